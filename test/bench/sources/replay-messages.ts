import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { DEFAULT_Z, FLOOR } from "#detection/rules/detection-settings.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import type { Severity } from "#model/kinds.ts";
import { gravestOf } from "#model/words.ts";
import type { DrawnEvent } from "./zone.ts";

/** Returns the messages that the detector sends about the events of one zone. */
export function replayMessages(events: readonly DrawnEvent[]): ReplayedMessage[] {
  const replay = createZoneReplay({ z: DEFAULT_Z, floor: FLOOR, fewAddresses: FEW_ADDRESSES });
  for (const event of events) replay.take(event, event.minute);
  return replay.finish();
}

/** An alert as the table of alerts scores it: by its start. */
export interface ReplayedAlert {
  /** `rule`, or the series of the attacker that opened an incident. */
  readonly kind: string;
  readonly severity: Severity;
  readonly openedAt: number;
}

/** Returns the alerts of messages, with the gravest severity of each. */
export function toAlerts(messages: readonly ReplayedMessage[]): ReplayedAlert[] {
  return [...Map.groupBy(messages, ({ incident }) => incident).values()].flatMap((all) => {
    const [first] = all;
    if (first === undefined) return [];
    const kind = first.subject === "incident" ? (first.attackers.at(-1)?.kind ?? "") : first.subject;
    return [{ kind, severity: gravestOf(all.map(({ severity }) => severity)), openedAt: first.at }];
  });
}
