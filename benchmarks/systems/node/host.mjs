// The process of one rival on Node: requests and answers as lines of JSON, as in ../host.py.
// node host.mjs MODULE, with the packages in BENCH_NODE_MODULES.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

/** Serve one system until standard input ends. */
async function serve(module) {
  const { system } = await import(pathToFileURL(module).href);
  const calls = {
    setup: async (request) => {
      await system.setup(request.dsn, request.install);
      return { versions: system.versions(), settings: system.settings };
    },
    append: (request) => system.append(request.count, request.batch),
    drain: async (request) => {
      const before = process.cpuUsage();
      const drained = await system.drain(request.count, request.shared);
      const used = process.cpuUsage(before);
      return { ...drained, cpu: (used.user + used.system) / 1e6 };
    },
    latency: (request) => system.latency(request.count, request.per_second),
    clear: () => system.clear(),
  };
  const answers = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      const request = JSON.parse(line);
      answer = { result: (await calls[request.call](request)) ?? null };
    } catch (error) {
      answer = { error: String(error).slice(0, 2000) };
    }
    answers(`${JSON.stringify(answer)}\n`);
  }
  await system.close();
  process.exit(0);
}

await serve(process.argv[2]);
