import { parse } from "csv-parse/sync";
import { SEVERITIES, VERDICTS } from "#model/kinds.ts";

/** One message of `backtest --alerts`. */
export interface Message {
  readonly zone: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly incident: string;
  readonly reason: string;
  readonly severity: string;
  readonly attackers: readonly { readonly kind: string; readonly key: string }[];
  readonly rules: readonly string[];
  /** Empty if the message has no verdict. */
  readonly verdict: string;
}

const COLUMNS = ["zone", "at", "incident", "reason", "severity", "subject", "attackers", "rules", "verdict"];
const MAX_MISTAKES = 10;

type Row = Readonly<Record<string, string>>;

/** The rule of each column that has one. A column or a reason that is not known here does no harm. */
const RULES: Readonly<Record<string, readonly [test: (value: string) => boolean, rule: string]>> = {
  zone: [(value) => value !== "", "the name of a zone"],
  at: [(value) => /^\d{1,12}$/.test(value), "epoch seconds"],
  incident: [(value) => value !== "", "the number of an alert"],
  reason: [(value) => value !== "", "a reason, such as first"],
  severity: [(value) => SEVERITIES.some((one) => one === value), `one of ${SEVERITIES.join(", ")}`],
  verdict: [
    (value) => value === "" || VERDICTS.some((one) => one === value),
    `empty or one of ${VERDICTS.join(", ")}`,
  ],
  attackers: [
    (value) =>
      value === "" || value.split(" ").every((one) => /^\w+=./.test(one) && decode(one) !== undefined),
    "kind=key, separated by blanks",
  ],
};

/**
 * Reads what `backtest --alerts` wrote.
 * @throws {RangeError} naming line, field, value and rule of each mistake.
 */
export function readMessages(text: string): Message[] {
  const [header = [], ...lines] = parse(text, { relax_column_count: true, skip_empty_lines: true });
  const missing = COLUMNS.filter((column) => !header.includes(column));
  if (missing.length > 0) throw new RangeError(`line 1: the header lacks ${missing.join(", ")}`);
  const mistakes: string[] = [];
  const messages = lines.map((cells, index) => {
    const row = Object.fromEntries(header.map((column, position) => [column, cells[position] ?? ""]));
    for (const [field, [isRight, rule]] of Object.entries(RULES))
      if (!isRight(row[field] ?? ""))
        mistakes.push(
          `line ${index + 2}, field ${field}: "${(row[field] ?? "").slice(0, 80)}" must be ${rule}`,
        );
    return toMessage(row);
  });
  if (mistakes.length > 0) throw new RangeError(mistakes.slice(0, MAX_MISTAKES).join("\n"));
  return messages;
}

function toMessage(row: Row): Message {
  const list = (field: string) => (row[field] ?? "").split(" ").filter((one) => one !== "");
  return {
    zone: row["zone"] ?? "",
    at: Number(row["at"]) * 1_000,
    incident: row["incident"] ?? "",
    reason: row["reason"] ?? "",
    severity: row["severity"] ?? "",
    attackers: list("attackers").map((one) => {
      const [kind = "", key = ""] = one.split(/=(.*)/s);
      return { kind, key: decode(key) ?? key };
    }),
    rules: list("rules").map((rule) => decode(rule) ?? rule),
    verdict: row["verdict"] ?? "",
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
