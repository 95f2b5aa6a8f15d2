import type { SoakResult } from "./run-soak.ts";

/** Returns whether every fault was survived and every check passed. */
export function isPassed({ faults, checks }: SoakResult): boolean {
  return (
    faults.every(({ injected, survived }) => injected === survived) && checks.every(({ isMet }) => isMet)
  );
}

/** Returns the table for people. */
export function reportSoak(result: SoakResult): string {
  const width = Math.max(
    ...result.faults.map(({ name }) => name.length),
    ...result.checks.map(({ name }) => name.length),
  );
  const faults = result.faults.map(
    ({ name, injected, survived, slowestMs }) =>
      `${name.padEnd(width)}  ${String(injected).padStart(8)}  ${String(survived).padStart(8)}  ${(slowestMs / 1_000).toFixed(1).padStart(9)}`,
  );
  const lies = result.lies.map(
    ({ name, told, answers, events }) =>
      `${`lie: ${name}`.padEnd(width)}  ${String(told).padStart(8)}  ${String(answers).padStart(8)}  ${String(events).padStart(9)}`,
  );
  const sum = (of: "injected" | "survived") => result.faults.reduce((total, fault) => total + fault[of], 0);
  const checks = result.checks.map(
    ({ name, detail, isMet }) => `${name.padEnd(width)}  ${isMet ? "met    " : "NOT MET"}  ${detail}`,
  );
  const requests = Object.entries(result.requests).map(([operation, count]) => `${operation} ${count}`);
  return `
${"fault".padEnd(width)}  injected  survived  slowest s
${faults.join("\n")}
${"all".padEnd(width)}  ${String(sum("injected")).padStart(8)}  ${String(sum("survived")).padStart(8)}

${"lie".padEnd(width)}      told   answers     events
${lies.join("\n")}

${checks.join("\n")}

complete ${Math.round(result.calmMs / 1_000)} s after the last fault; requests to the platform: ${requests.join(", ")}
${isPassed(result) ? "passed" : "FAILED"}
`;
}
