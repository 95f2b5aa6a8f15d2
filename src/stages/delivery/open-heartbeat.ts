import type { Clock } from "#lib/clock.ts";
import type { Secret } from "#lib/secret.ts";
import { openEndpoint } from "./endpoint.ts";
import { POST_TIMEOUT_MS, post } from "./post.ts";

/**
 * Opens the heartbeat to the external monitor; null if none is configured. Posts to public addresses only, like a
 * channel. Its errors contain no more of the address than the host.
 * @throws {UsageError} for a bad URL
 */
export function openHeartbeat(
  { heartbeatUrl, channels }: { heartbeatUrl: Secret | null; channels: { allowPrivate: boolean } },
  clock: Clock,
): ((signal: AbortSignal) => Promise<void>) | null {
  if (heartbeatUrl === null) return null;
  const endpoint = openEndpoint("heartbeat", heartbeatUrl, { allowPrivateNetworks: channels.allowPrivate });
  const message = { headers: {}, body: "{}", timeoutMs: POST_TIMEOUT_MS, clock };
  return async (signal) => void (await post(endpoint, { ...message, signal }));
}
