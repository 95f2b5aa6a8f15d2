/**
 * Loaded with `--import` by the processes that tests start. They live for seconds, in which V8's optimizing compilers
 * cost more than they save.
 */
import { setFlagsFromString } from "node:v8";
import "../../src/app/quick-imports.ts";

setFlagsFromString("--no-maglev");
setFlagsFromString("--no-opt");
