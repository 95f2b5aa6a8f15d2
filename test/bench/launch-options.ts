import path from "node:path";
import launch from "#app/launch.json" with { type: "json" };

/** As `npm start` runs the service; more options of Node from the environment, to profile it. */
export const LAUNCH = {
  execArgv: [...launch.nodeOptions, ...(process.env["BENCH_NODE_OPTIONS"] ?? "").split(" ").filter(Boolean)],
  env: {
    ...launch.environment,
    NODE_COMPILE_CACHE: path.join(import.meta.dirname, "../..", launch.compileCache),
    ...process.env,
  },
};
