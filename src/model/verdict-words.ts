import type { Mark, VerdictFeature } from "./kinds.ts";

/** The numbers of a verdict, in words. */
export const FEATURE_WORDS: Readonly<Record<VerdictFeature, string>> = {
  spread: "many addresses",
  usualAsn: "addresses in usual networks",
  usualJa4: "requests with a usual JA4",
  dirty: "addresses with other rules on other paths",
  rulesPerIp: "many rules of each address",
  knownPath: "requests on known paths",
  onePath: "requests on the largest path",
  session: "requests with a session",
  referer: "requests from a page of the site",
  idiom: "requests with an attack idiom",
  repeat: "repeated requests",
  botUa: "user agents that say bot",
};

/** The words that are not "a" with the mark's own. */
const MARK_WORDS: Partial<Record<Mark, string>> = { attack: "an attack", noise: "noise" };
const MOST_DAYS = 3;
const formatDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

/** Returns a sentence for each mark, which come the newest first: `You called this a misfire on 3 and 9 November.` */
export function sayMarksBefore(marks: readonly { readonly mark: Mark; readonly at: string }[]): string[] {
  return [...Map.groupBy(marks, ({ mark }) => mark)].map(([mark, of]) => {
    const days = [...new Set(of.map(({ at }) => formatDay.format(Date.parse(at))))];
    const rest = days.length > MOST_DAYS ? ` and ${days.length - MOST_DAYS} days before` : "";
    const shown = days.slice(0, MOST_DAYS).toReversed();
    // A month is named once if the next day is in it as well.
    const named = shown.map((day, index) => {
      const [number = "", month = ""] = day.split(" ");
      return shown[index + 1]?.endsWith(` ${month}`) === true ? number : day;
    });
    const listed = named.join(", ").replace(/, (?=[^,]*$)/, rest === "" ? " and " : ", ");
    return `You called this ${MARK_WORDS[mark] ?? `a ${mark.replace("-", " ")}`} on ${listed}${rest}.`;
  });
}

/** Returns `93 of 100`. */
export function sayOdds(odds: number): string {
  return `${Math.round(odds * 100)} of 100`;
}
