// pg-boss: a partition per queue, jobs fetched and completed in batches.

import { createRequire } from "node:module";

import { Handler, now, payload, sleep } from "./measuring.mjs";

const require = createRequire(`${process.env.BENCH_NODE_MODULES}/`);
const PgBoss = require("pg-boss");
const { Pool } = require("pg");

const BATCH = 500;
const POLL_SECONDS = 0.5;
const QUEUE = "bench";

const handler = new Handler();
let boss;
let pool;

async function left() {
  const { rows } = await pool.query("select count(*)::int as n from pgboss.job where name = $1 and state < 'completed'", [
    QUEUE,
  ]);
  return rows[0].n;
}

export const system = {
  settings: `fetch and complete in batches of ${BATCH}; for latency, work() polling every ${POLL_SECONDS} s, its shortest`,

  versions: () => ({ "pg-boss": require("pg-boss/package.json").version, node: process.version }),

  async setup(dsn, install) {
    pool = new Pool({ connectionString: dsn, max: 2 });
    boss = new PgBoss({ connectionString: dsn, supervise: false, schedule: false });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    if (install) await boss.createQueue(QUEUE);
  },

  async append(count, batch) {
    const jobs = Array.from({ length: count }, (_, number) => ({ name: QUEUE, data: payload(number) }));
    const started = now();
    for (let start = 0; start < count; start += batch) {
      if (batch === 1) await boss.send(QUEUE, jobs[start].data);
      else await boss.insert(jobs.slice(start, start + batch));
    }
    return now() - started;
  },

  async drain(count, shared) {
    handler.reset();
    while (shared || handler.handled < count) {
      const jobs = await boss.fetch(QUEUE, { batchSize: BATCH });
      if (jobs.length === 0) {
        if (shared && (await left()) === 0) break;
        await sleep(5);
        continue;
      }
      for (const job of jobs) handler.value(job.data);
      await boss.complete(
        QUEUE,
        jobs.map((job) => job.id),
      );
    }
    return handler.drained(left, shared);
  },

  async latency(count, perSecond) {
    handler.reset();
    await boss.work(QUEUE, { batchSize: BATCH, pollingIntervalSeconds: POLL_SECONDS }, async (jobs) => {
      for (const job of jobs) handler.value(job.data);
    });
    await sleep(1000);
    const found = await handler.paced(count, perSecond, (number) => boss.send(QUEUE, payload(number)));
    await boss.offWork(QUEUE);
    return found;
  },

  async clear() {
    await pool.query("delete from pgboss.job");
  },

  async close() {
    await boss.stop({ graceful: false });
    await pool.end();
  },
};
