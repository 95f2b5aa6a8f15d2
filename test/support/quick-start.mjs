/**
 * Loaded with `--import` by the processes that tests start. They live for seconds, in which V8's optimizing compilers
 * cost more than they save.
 */
import { setFlagsFromString } from "node:v8";
import { isMainThread } from "node:worker_threads";
import "../../src/app/quick-imports.ts";

// The threads of a worker of the tests load this too, and a flag holds for the whole process.
if (isMainThread) {
  setFlagsFromString("--no-maglev");
  setFlagsFromString("--no-opt");
}
