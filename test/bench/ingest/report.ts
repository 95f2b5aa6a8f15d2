import type { CpuPerEvent, IngestBenchResult, Turn } from "../ingest.ts";
import type { Verdict } from "../measure.ts";
import { toSpread } from "../spread.ts";
import { alignColumns, showSpread, toVerdictRow } from "../tables.ts";

/** The verdicts and the figures behind them, for people. */
export function reportIngest(result: IngestBenchResult, verdicts: readonly Verdict[]): string {
  const { served, missingTools } = result;
  const size = (served.bytes / served.events).toFixed(0);
  const lines = [
    `${served.events} events of ${size} bytes on ${served.pages} pages, ${served.zones.length} sessions,` +
      ` median of ${result.service.length} repeats (min .. max)`,
    "",
    ...alignColumns([["", "measured", "", "limit"], ...verdicts.map(toVerdictRow)]),
    "",
    ...alignColumns([["", "events/s", "WAL B/event", "disk B/event"], ...turnRows(result)]),
    "",
    `processor time of the ingesting process: ${showCpu(result, ({ own }) => own)} µs per event`,
    `of the service and Postgres together: ingest ${showCpu(result, ({ ingest }) => ingest)}, roll-up ${showCpu(result, ({ rollUp }) => rollUp)}, source series ${showCpu(result, ({ sources }) => sources)} µs per event`,
    `disk by table: ${[...result.diskByTable]
      .filter(([, bytes]) => bytes > 0)
      .map(showTable(served.events))
      .join(", ")}`,
  ];
  if (missingTools.length > 0) {
    lines.push(`not measured: the chain curl | jq | psql, because of missing ${missingTools.join(", ")}`);
  }
  return `${lines.join("\n")}\n`;
}

function showCpu({ cpuUsPerEvent }: IngestBenchResult, pick: (cpu: CpuPerEvent) => number): string {
  return showSpread(toSpread(cpuUsPerEvent.map(pick)), 1);
}

function turnRows(result: IngestBenchResult): string[][] {
  const row = (name: string, turns: readonly Turn[]) => [
    name,
    showSpread(toSpread(turns.map((turn) => turn.eventsPerSecond)), 0),
    showSpread(toSpread(turns.map((turn) => turn.walPerEvent)), 0),
    showSpread(toSpread(turns.map((turn) => turn.diskPerEvent)), 0),
  ];
  return [
    row("service", result.service),
    ["service, pages known", showSpread(toSpread(result.replay), 0)],
    row("COPY by the server", result.copy),
    row("curl | jq | psql", result.script),
  ];
}

function showTable(events: number) {
  return ([name, bytes]: [string, number]) => `${name} ${(bytes / events).toFixed(1)} B/event`;
}
