import type { RunningApp } from "../app.ts";
import { ownCommand } from "../own-command.ts";

/** What a service that runs offers whoever has started it; every line fits 80 columns but for long addresses. */
export function describeRunning(
  { platform, httpUrl, zoneIds }: Pick<RunningApp, "platform" | "httpUrl" | "zoneIds">,
  dataDir: string,
): string {
  const commands: [string, string][] = [
    ["status", "what is stored, what needs attention"],
    ["coverage", "which hours are proven complete"],
    ["alerts list", "what is not resolved"],
    ["gaps", "what is missing for good, and why"],
    ["--help", "everything else"],
  ];
  const widest = Math.max(...commands.map(([command]) => command.length));
  const lines = commands.map(([command, does]) => `  ${ownCommand(command.padEnd(widest))}  ${does}`);
  const addresses = [
    ...(httpUrl === null
      ? []
      : [
          "",
          "The API, with the key that the first start printed (or one of `keys create`):",
          `  curl -H "AccessKey: $KEY" ${httpUrl}/api/v1/alerts`,
          `  ${httpUrl}/docs  every route, with examples`,
        ]),
    ...(platform.isEmulated ? ["", "What the emulated platform holds:", `  ${platform.url}/_emulator`] : []),
  ];
  return [
    platform.isEmulated
      ? "An attack on zone 101 begins a minute after the start. Its alert appears here, a\nminute later at most."
      : `Watching ${zoneIds.length === 1 ? "zone" : "zones"} ${zoneIds.join(", ")}.`,
    "",
    "Look around, in another terminal:",
    ...lines,
    ...addresses,
    "",
    `State is kept in ${dataDir}.`,
    "Ctrl-C stops everything that was started.",
    "",
  ].join("\n");
}
