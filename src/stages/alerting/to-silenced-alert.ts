import type { AlertSubject } from "#model/fingerprint.ts";
import { parseDetails } from "./alert-details.ts";
import { gravestSeverity } from "./alert-history.ts";
import { type StoredAlert, toAlertRecord } from "./alert-record.ts";
import type { SilencedAlert } from "./silence.ts";

/** Returns a stored alert as silences are compared with it: as it is in its latest message. */
export function toSilencedAlert(
  row: AlertSubject & StoredAlert & { readonly details: unknown },
): Required<Omit<SilencedAlert, "incident">> {
  const { kind, zoneId, ruleId } = row;
  const { message } = parseDetails(row.details);
  return {
    kind,
    zoneId,
    ruleId,
    rules: message?.rules,
    severity: message?.severity ?? gravestSeverity(toAlertRecord(row)),
    traits: message?.traits ?? {},
    attackers: message?.attackers?.filter(({ isActive }) => isActive) ?? [],
  };
}
