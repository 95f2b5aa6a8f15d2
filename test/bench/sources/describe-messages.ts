import { GROUPS, type MessageScore } from "./score-messages.ts";

interface Row {
  readonly name: string;
  /** Null if no attack of this kind was drawn. */
  readonly value: number | null;
  /** The bar; left out for a row that only informs. */
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** Returns the score as a table with the bars beside it. */
export function describeMessages(score: MessageScore): string {
  const rows = rowsOf(score);
  const width = Math.max(...rows.map(({ name }) => name.length));
  const lines = rows.map(({ name, value, atLeast, atMost }) => {
    const bar = atLeast === undefined ? atMost : atLeast;
    const sign = atLeast === undefined ? "<=" : ">=";
    if (value === null) return `${name.padEnd(width)}          -`;
    const isMet = atLeast === undefined ? value <= (atMost ?? value) : value >= atLeast;
    const judged = bar === undefined ? "" : `${sign} ${bar.toFixed(2)}  ${isMet ? "met" : "MISSED"}`;
    return `${name.padEnd(width)}  ${value.toFixed(3).padStart(9)}  ${judged}`.trimEnd();
  });
  const causes = Object.entries(score.causes).slice(0, 12);
  return `${[...lines, "", `false alerts: ${causes.map(([cause, n]) => `${n} ${cause}`).join(", ")}`].join("\n")}\n`;
}

export function rowsOf(score: MessageScore): Row[] {
  const { single, botnets, overlapping, rotating } = GROUPS;
  const of = {
    single: score.of(single),
    botnets: score.of(botnets),
    overlapping: score.of(overlapping),
    rotating: score.of(rotating),
  };
  const [second, burst, flood] = [score.of(["D"]), score.of(["g"]), score.of(["F"])];
  const rows: Row[] = [
    { name: "overlapping scanners named within 10 min", value: of.overlapping.namedWithin10, atLeast: 0.85 },
    { name: "overlapping scanners named within 30 min", value: of.overlapping.namedWithin30, atLeast: 0.87 },
    ...overlapping.map((kind) => ({
      name: `  ${kind} named within 30 min`,
      value: score.of([kind]).namedWithin30,
    })),
    { name: "second botnet named within 10 min", value: second.namedWithin10 },
    { name: "second botnet named within 30 min", value: second.namedWithin30, atLeast: 0.9 },
    { name: "single attacks named within 10 min", value: of.single.namedWithin10 },
    { name: "single attacks named within 30 min", value: of.single.namedWithin30 },
    { name: "addresses of rotating scanners named", value: of.rotating.addressesNamed },
    { name: "alerts per single attack", value: of.single.alertsPerAttack, atMost: 1.5 },
    { name: "alerts per botnet", value: of.botnets.alertsPerAttack, atMost: 1.3 },
    { name: "alerts per overlapping scanner", value: of.overlapping.alertsPerAttack, atMost: 1.3 },
    { name: "alerts per rotating scanner", value: of.rotating.alertsPerAttack, atMost: 2.2 },
    { name: "messages per single attack", value: of.single.messagesPerAttack },
    { name: "messages per botnet", value: of.botnets.messagesPerAttack },
    { name: "messages per overlapping scanner", value: of.overlapping.messagesPerAttack },
    { name: "messages per rotating scanner", value: of.rotating.messagesPerAttack },
    { name: "false source alerts per zone-day", value: score.falseSources, atMost: 0.06 },
    { name: "false pages per zone-day", value: score.falsePages, atMost: 0.1 },
    { name: "false notifications per zone-day", value: score.falseNotifications, atMost: 0.75 },
    { name: "F1 of pages by start", value: score.f1, atLeast: 0.78 },
    { name: "F1 of pages by start or named join", value: score.f1WithJoins, atLeast: 0.85 },
    { name: "bursts of one rule with an alert", value: burst.notified },
  ];
  if (flood.attacks === 0) return rows;
  return [
    ...rows,
    { name: "alerts per flood", value: flood.alertsPerAttack },
    { name: "messages per flood", value: flood.messagesPerAttack },
    { name: "addresses of floods named", value: flood.addressesNamed },
  ];
}
