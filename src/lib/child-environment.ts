/** The variables that a process needs to run. None has a secret. */
const PASSED = ["PATH", "LD_LIBRARY_PATH", "SystemRoot", "TEMP", "TMP", "TMPDIR", "NODE_COMPILE_CACHE"];

/** Returns the environment of a child process that needs no setting of the service. */
export function childEnvironment(): Record<string, string> {
  return Object.fromEntries(PASSED.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
