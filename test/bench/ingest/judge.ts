import type { IngestBenchResult, Turn } from "../ingest.ts";
import { type Spread, toSpread } from "../spread.ts";

const MB = 1_000_000;

interface Limit {
  readonly kind: "at-least" | "at-most";
  readonly value: number;
  readonly unit: "x" | "MB";
}

/** A measure that has a limit; `spread` is null and so `isMet` when it could not be taken. */
export interface Verdict {
  readonly name: string;
  readonly limit: Limit;
  readonly spread: Spread | null;
  readonly isMet: boolean | null;
}

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
    judge("resident memory of the service", { kind: "at-most", value: 300, unit: "MB" }, memory),
  ];
}

function atLeast(value: number): Limit {
  return { kind: "at-least", value, unit: "x" };
}

function atMost(value: number): Limit {
  return { kind: "at-most", value, unit: "x" };
}

function judge(name: string, limit: Limit, values: readonly number[]): Verdict {
  const spread = toSpread(values);
  if (spread === null) return { name, limit, spread, isMet: null };
  const { median } = spread;
  return {
    name,
    limit,
    spread,
    isMet: limit.kind === "at-least" ? median >= limit.value : median <= limit.value,
  };
}
