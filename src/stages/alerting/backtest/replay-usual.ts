import { DAY_MS } from "#lib/units.ts";
import type { UsualDimension } from "#model/kinds.ts";
import type { UsualValues, VerdictEvent } from "#stages/detection/verdict/evidence.ts";
import { createUses } from "#stages/detection/verdict/find-usual.ts";

/** Learns what is usual in a zone from events in the order of time, a UTC day at a time, as the service does at night. */
export function createUsualReplay() {
  const uses = createUses();
  let [days, today, hasCookies]: [number, number | null, boolean] = [0, null, false];
  let usual = learn();

  function learn(): UsualValues {
    const found = uses.find();
    const of = (dimension: UsualDimension) =>
      new Set(found.flatMap((one) => (one.dimension === dimension ? [one.value] : [])));
    return { asns: of("asn"), ja4s: of("ja4"), paths: of("path"), days, hasCookies };
  }

  return {
    take({ at, ip, asn, ja4 }: VerdictEvent, template: string, hasSession: boolean): void {
      const day = Math.floor(at / DAY_MS);
      if (today !== null && day !== today) {
        days += 1;
        usual = learn();
      }
      today = day;
      uses.note({ dimension: "asn", value: asn, user: String(day), at });
      uses.note({ dimension: "ja4", value: ja4, user: ip, at });
      uses.note({ dimension: "path", value: template, user: ip, at });
      hasCookies ||= hasSession;
    },
    /** Returns the values that were usual when the day of the latest event began. */
    read: (): UsualValues => ({ ...usual, hasCookies }),
  };
}
