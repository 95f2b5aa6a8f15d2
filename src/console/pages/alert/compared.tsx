import { formatShare } from "../../../lib/format.ts";
import type { AlertContext, AlertDetail } from "../../api/alert.ts";
import { FilterValue } from "../../components/filter-value.tsx";
import { Panel } from "../../components/panel.tsx";
import { type Dimension, formatCount } from "../../look/words.ts";
import classes from "./alert.module.css";

type Lists = NonNullable<AlertContext["during"]>["top"];
const SHOWN: readonly (readonly [keyof Lists, Dimension, string])[] = [
  ["ips", "ip", "addresses"],
  ["paths", "url", "paths"],
  ["userAgents", "ua", "user agents"],
  ["countries", "country", "countries"],
  ["asns", "asn", "networks"],
  ["ja4s", "ja4", "TLS fingerprints"],
  ["actions", "action", "actions"],
];

/** Who, where and what during the alert, and how much more of it than in the hour before. */
export function Compared({
  alert,
  context,
}: {
  readonly alert: AlertDetail;
  readonly context: AlertContext | undefined;
}) {
  const during: Partial<Lists> | null = context?.during?.top ?? alert.evidence;
  if (during === null) return null;
  const before = context?.before?.top;
  const about =
    context?.during == null
      ? "during the alert"
      : `${formatCount(context.during.total)} events during the alert, against ${formatCount(context.before?.total ?? 0)} in the hour before`;
  return (
    <Panel title="Who, where, what" about={about} flush>
      <div className={classes["lists"]}>
        {SHOWN.map(([name, field, title]) => {
          const rows = during[name] ?? [];
          if (rows.length === 0) return null;
          return (
            <div key={name} className={classes["list"]}>
              <h3>{title}</h3>
              {rows.map(({ value, share }) => {
                const was = before?.[name].find((one) => one.value === value)?.share ?? 0;
                return (
                  <div key={value} className={classes["share"]}>
                    {/* A path has no host, and the dimension is the whole address of the page. */}
                    <FilterValue field={field} value={value} contains={name === "paths"} />
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
