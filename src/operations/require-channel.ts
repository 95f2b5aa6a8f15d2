import { listUsedChannels } from "#db/privacy/known-subjects.ts";
import { closestName } from "#lib/closest-name.ts";
import { nameKnown } from "./name-known.ts";
import type { Asked } from "./operation.ts";
import { Refusal } from "./refusal.ts";

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
  const known = [...new Set([...configured, ...(await listUsedChannels(db))])].sort();
  if (known.includes(channel)) return;
  const meant = closestName(channel, known);
  const hint = meant === null ? "" : `: did you mean ${meant}?`;
  const rule = `must be a channel that is configured or was used before (${nameKnown(known)})${hint}`;
  throw new Refusal(422, {
    slug: "unknown-channel",
    mistakes: [{ field, value: JSON.stringify(channel), rule }],
  });
}
