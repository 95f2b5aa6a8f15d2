import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type RuleKey, useRuleSeries } from "../../api/rule.ts";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";

export const WIDTHS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;
export type WidthName = keyof typeof WIDTHS;
/** The longest span that the service shows at each width. */
const LONGEST_MS = { minute: 3 * DAY_MS, hour: 60 * DAY_MS, day: 60 * DAY_MS };

function pickWidth(asked: string | null, spanMs: number): WidthName {
  const isKnown = asked !== null && Object.hasOwn(WIDTHS, asked);
  if (isKnown && spanMs <= LONGEST_MS[asked as WidthName]) return asked as WidthName;
  if (spanMs <= DAY_MS) return "minute";
  return spanMs <= 14 * DAY_MS ? "hour" : "day";
}

/** The counts of the rule over the span of the header. The parts of the page share them. */
export function useCurve(key: RuleKey) {
  const { params } = useUrlState();
  const { fromMs, toMs } = useSpan();
  const width = pickWidth(params.get("width"), toMs - fromMs);
  const from = Math.max(fromMs, toMs - LONGEST_MS[width]);
  const startMs = Math.floor(from / WIDTHS[width]) * WIDTHS[width];
  const series = useRuleSeries({ ...key, width, from: startMs, to: Math.ceil(toMs) });
  return {
    width,
    series,
    isCut: from > fromMs,
    startMs,
    allowed: (name: WidthName) => toMs - fromMs <= LONGEST_MS[name],
  };
}
