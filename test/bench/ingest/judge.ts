import type { IngestBenchResult, Turn } from "../ingest.ts";
import { atLeast, atMost, judge, type Verdict } from "../measure.ts";

const MB = 1_000_000;

/** Every measure against its limit. Ratios are taken repeat by repeat: neighbours in time share the machine's mood. */
export function judgeIngest(result: IngestBenchResult): Verdict[] {
  const { service, copy, script } = result;
  const ratios = (pick: (turn: Turn) => number, other: readonly Turn[]) =>
    other.flatMap((turn, index) => {
      const own = service[index];
      return own === undefined ? [] : [pick(own) / pick(turn)];
    });
  const speed = (turn: Turn) => turn.eventsPerSecond;
  const memory = result.peakRssBytes.map((bytes) => bytes / MB);
  return [
    judge("speed, to COPY by the server", atLeast(0.7), ratios(speed, copy)),
    judge("speed, to curl | jq | psql", atLeast(8), ratios(speed, script)),
    judge(
      "WAL per event, to jsonb rows",
      atMost(0.55),
      ratios((turn) => turn.walPerEvent, script),
    ),
    judge(
      "disk per event, to jsonb rows",
      atMost(0.55),
      ratios((turn) => turn.diskPerEvent, script),
    ),
    judge(
      "CPU of the source series, to ingest and roll-up",
      atMost(0.05),
      result.cpuUsPerEvent.map(({ ingest, rollUp, sources }) => sources / (ingest + rollUp)),
    ),
    judge(
      "disk of the source series per event",
      { kind: "at-most", value: 10, unit: "B" },
      result.sourceBytesPerEvent,
    ),
    judge("resident memory of the service", { kind: "at-most", value: 300, unit: "MB" }, memory),
  ];
}
