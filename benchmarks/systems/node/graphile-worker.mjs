// Graphile Worker: SQL functions, jobs fetched ahead into a local queue, done jobs deleted in batches.

import { createRequire } from "node:module";

import { Handler, now, payload, sleep } from "./measuring.mjs";

const require = createRequire(`${process.env.BENCH_NODE_MODULES}/`);
const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const { Pool } = require("pg");

const CONCURRENCY = 24;
const LOCAL_QUEUE = 500;
const COMPLETE_MILLISECONDS = 0;
const TASK = "bench";

const handler = new Handler();
const logger = new Logger(() => () => {});
let pool;
let utils;
let connection;

async function start() {
  handler.reset();
  return run(
    {
      pgPool: pool,
      logger,
      noHandleSignals: true,
      preset: {
        worker: {
          concurrentJobs: CONCURRENCY,
          localQueue: { size: LOCAL_QUEUE },
          completeJobBatchDelay: COMPLETE_MILLISECONDS,
          failJobBatchDelay: COMPLETE_MILLISECONDS,
        },
      },
    },
    { [TASK]: (job) => handler.value(job) },
  );
}

async function left() {
  const { rows } = await pool.query("select count(*)::int as n from graphile_worker.jobs");
  return rows[0].n;
}

export const system = {
  settings: `concurrency ${CONCURRENCY}, local queue ${LOCAL_QUEUE}, completions in batches`,

  versions: () => ({ "graphile-worker": require("graphile-worker/package.json").version, node: process.version }),

  async setup(dsn, install) {
    pool = new Pool({ connectionString: dsn, max: CONCURRENCY + 4 });
    utils = await makeWorkerUtils({ pgPool: pool, logger });
    if (install) await utils.migrate();
    connection = await pool.connect();
  },

  async append(count, batch) {
    const jobs = Array.from({ length: count }, (_, number) => ({ identifier: TASK, payload: payload(number) }));
    const started = now();
    for (let start = 0; start < count; start += batch) {
      if (batch === 1) await utils.addJob(TASK, jobs[start].payload);
      else await utils.addJobs(jobs.slice(start, start + batch));
    }
    return now() - started;
  },

  async drain(count, shared) {
    const runner = await start();
    await handler.until(count, shared);
    const drained = await handler.drained(left, shared);
    await runner.stop();
    return drained;
  },

  async latency(count, perSecond) {
    const runner = await start();
    await sleep(1000);
    const found = await handler.paced(count, perSecond, (number) => utils.addJob(TASK, payload(number)));
    await runner.stop();
    return found;
  },

  async clear() {
    await pool.query("truncate graphile_worker._private_jobs");
  },

  async close() {
    connection.release();
    await utils.release();
    await pool.end();
  },
};
