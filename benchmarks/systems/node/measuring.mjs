// What every system on Node measures with: the payload, the handler and the clock, as in ../system.py.

export const PAYLOAD_BYTES = 1024;
const IDLE_SECONDS = 1.5;
const QUIET_SECONDS = 0.05;
const SHARED_LOOK_MILLISECONDS = 20;
const LOOK_MILLISECONDS = 2;
const SETTLE_SECONDS_MAX = 30;

/** Seconds of the monotonic clock, the same as Python's time.monotonic() on this machine. */
export const now = () => Number(process.hrtime.bigint()) / 1e9;
export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A payload whose JSON has about PAYLOAD_BYTES. */
export function payload(number) {
  const empty = JSON.stringify({ number, filler: "" }).length;
  return { number, filler: "x".repeat(PAYLOAD_BYTES - empty) };
}

/** What every system's handler does: count, and note when the job came. */
export class Handler {
  reset() {
    this.handled = 0;
    this.first = 0;
    this.last = 0;
    this.arrived = new Map();
  }

  value(job) {
    const moment = now();
    if (this.handled === 0) this.first = moment;
    this.handled += 1;
    this.last = moment;
    if (job.number < 0) this.arrived.set(job.number, moment);
  }

  /** Return when `count` jobs were handled, or none came for a while when other processes work too. */
  async until(count, shared) {
    let seen = -1;
    let since = now();
    while (this.handled < count) {
      if (this.handled !== seen) {
        seen = this.handled;
        since = now();
      } else if (shared && now() - since > (this.handled > 0 ? QUIET_SECONDS : IDLE_SECONDS)) {
        return;
      } else if (now() - since > SETTLE_SECONDS_MAX) {
        throw new Error(`stopped at ${this.handled} of ${count} jobs`);
      }
      await sleep(LOOK_MILLISECONDS);
    }
  }

  /** The drain of a worker that still runs; it ends when the database has nothing left to do. */
  async drained(left, shared) {
    const deadline = now() + SETTLE_SECONDS_MAX;
    while ((await left()) > 0) {
      if (now() > deadline) throw new Error("handled jobs were not recorded as done");
      await sleep(shared ? SHARED_LOOK_MILLISECONDS : LOOK_MILLISECONDS);
    }
    return { handled: this.handled, first: this.first, last: now() };
  }

  /** Call `append` with -1, -2, … at a steady rate; milliseconds from each call to its handler. */
  async paced(count, perSecond, append) {
    const called = new Map();
    const start = now();
    for (let place = 1; place <= count; place += 1) {
      await sleep(Math.max(0, (start + place / perSecond - now()) * 1000));
      called.set(-place, now());
      await append(-place);
    }
    const deadline = now() + SETTLE_SECONDS_MAX;
    while (this.arrived.size < count && now() < deadline) await sleep(LOOK_MILLISECONDS);
    return [...this.arrived].map(([number, moment]) => (moment - called.get(number)) * 1000);
  }
}
