import { listUsedChannels } from "#db/privacy/known-subjects.ts";
import type { Asked } from "./operation.ts";
import { refuseUnknown } from "./refuse-unknown.ts";

/**
 * Refuses a channel that is neither configured nor was used before.
 * @throws {Refusal} 422 naming the channels, and the one that is probably meant
 */
export async function requireChannel(
  { db, service }: Pick<Asked, "db" | "service">,
  channel: string,
  field = "channel",
): Promise<void> {
  const configured = service.alerting().channels.map(({ name }) => name);
  if (configured.includes(channel)) return;
  const known = [...configured, ...(await listUsedChannels(db))];
  if (!known.includes(channel)) refuseUnknown(channel, known, { what: "channel", field });
}
