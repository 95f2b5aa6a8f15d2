import { listUsedChannels } from "#db/privacy/known-subjects.ts";
import { closestName } from "#lib/closest-name.ts";
import type { Asked } from "./operation.ts";
import { Refusal } from "./refusal.ts";

const MOST_NAMED = 20;

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
  const named = known.slice(0, MOST_NAMED).join(", ");
  const more = known.length > MOST_NAMED ? ` and ${known.length - MOST_NAMED} more` : "";
  const meant = closestName(channel, known);
  const hint = meant === null ? "" : `: did you mean ${meant}?`;
  const rule = `must be a channel that is configured or was used before (${known.length === 0 ? "there is none" : `${named}${more}`})${hint}`;
  throw new Refusal(422, {
    slug: "unknown-channel",
    mistakes: [{ field, value: JSON.stringify(channel), rule }],
  });
}
