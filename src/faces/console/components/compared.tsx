import { formatShare } from "#lib/format.ts";
import type { FieldName } from "#model/fields.ts";
import type { AlertContext } from "../api/queries.ts";
import { formatCount } from "../style/words.ts";
import classes from "./compared.module.css";
import { Panel } from "./panel.tsx";
import { FilterValue } from "./payload.tsx";

type Lists = NonNullable<AlertContext["during"]>["top"];
const SHOWN: readonly (readonly [keyof Lists, FieldName, string])[] = [
  ["ips", "address", "addresses"],
  ["paths", "path", "paths"],
  ["countries", "country", "countries"],
  ["asns", "network", "networks"],
  ["ja4s", "ja4", "TLS fingerprints"],
  ["actions", "action", "actions"],
  // Last, over the whole width: these values are long.
  ["userAgents", "agent", "user agents"],
];

/** The lists hold only the beginning of a longer value. */
const CUT_CHARS = 300;

interface Props {
  readonly context: Pick<AlertContext, "during" | "before"> | undefined;
  /** Shown until the context is there. */
  readonly evidence?: Partial<Lists> | null;
  /** The words for what is compared: `the alert`. */
  readonly what: string;
}

/** Who, where and what during an alert or a spike, and how much more of it than in the hour before. */
export function Compared({ context, evidence = null, what }: Props) {
  const during: Partial<Lists> | null = context?.during?.top ?? evidence;
  if (during === null) return null;
  const before = context?.before?.top;
  const about =
    context?.during == null
      ? `during ${what}`
      : `${formatCount(context.during.total)} events during ${what}, against ${formatCount(context.before?.total ?? 0)} in the hour before`;
  return (
    <Panel title="Who, where, what" about={about} flush>
      <div className={classes["lists"]}>
        {SHOWN.map(([name, field, title]) => {
          const rows = during[name] ?? [];
          if (rows.length === 0) return null;
          return (
            <div key={name} className={classes["list"]} data-long={name === "userAgents" || undefined}>
              <h3>{title}</h3>
              {rows.map(({ value, share }) => {
                const was = before?.[name].find((one) => one.value === value)?.share ?? 0;
                return (
                  <div key={value} className={classes["share"]}>
                    <FilterValue
                      field={field}
                      value={value}
                      contains={Array.from(value).length >= CUT_CHARS}
                    />
                    <b>{formatShare(share)}</b>
                    <span className="lw-dim">{before === undefined ? "" : wordChange(share - was, was)}</span>
                  </div>
                );
              })}
            </div>
          );
        })}
      </div>
    </Panel>
  );
}

function wordChange(change: number, was: number): string {
  if (was === 0) return "new in the top 5";
  const points = Math.round(change * 100);
  return points === 0 ? "as before" : `${points > 0 ? "+" : "−"}${Math.abs(points)} points`;
}
