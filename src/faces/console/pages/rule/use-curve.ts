import { DAY_MS } from "#lib/units.ts";
import { WIDTH_NAMES, WIDTH_SECONDS, type WidthName } from "#model/kinds.ts";
import { type RuleKey, useRuleSeries } from "../../api/rule.ts";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";

/** The longest span that the service shows at each width. */
const LONGEST_MS: Readonly<Record<WidthName, number>> = {
  minute: 3 * DAY_MS,
  hour: 60 * DAY_MS,
  day: 60 * DAY_MS,
};

function pickWidth(asked: string | null, spanMs: number): WidthName {
  const known = WIDTH_NAMES.find((name) => name === asked);
  if (known !== undefined && spanMs <= LONGEST_MS[known]) return known;
  if (spanMs <= DAY_MS) return "minute";
  return spanMs <= 14 * DAY_MS ? "hour" : "day";
}

/** The counts of the rule over the span of the header. The parts of the page share them. */
export function useCurve(key: RuleKey) {
  const { params } = useUrlState();
  const { fromMs, toMs } = useSpan();
  const width = pickWidth(params.get("width"), toMs - fromMs);
  const from = Math.max(fromMs, toMs - LONGEST_MS[width]);
  const widthMs = WIDTH_SECONDS[width] * 1_000;
  const startMs = Math.floor(from / widthMs) * widthMs;
  const series = useRuleSeries({ ...key, width, from: startMs, to: Math.ceil(toMs) });
  return {
    width,
    widthMs,
    series,
    isCut: from > fromMs,
    startMs,
    allowed: (name: WidthName) => toMs - fromMs <= LONGEST_MS[name],
  };
}
