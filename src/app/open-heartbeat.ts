import type { Config } from "#config/config.ts";
import type { Clock } from "#lib/clock.ts";
import { openEndpoint } from "#stages/delivery/endpoint.ts";
import { POST_TIMEOUT_MS, post } from "#stages/delivery/post.ts";

/**
 * Opens the heartbeat to the external monitor; null if none is configured. Posts to public addresses only, like a
 * channel. Its errors contain no more of the address than the host.
 * @throws {UsageError} for a bad URL
 */
export function openHeartbeat(
  { heartbeatUrl, channels }: Pick<Config, "heartbeatUrl" | "channels">,
  clock: Clock,
): ((signal: AbortSignal) => Promise<void>) | null {
  if (heartbeatUrl === null) return null;
  const endpoint = openEndpoint("heartbeat", heartbeatUrl, { allowPrivateNetworks: channels.allowPrivate });
  const message = { headers: {}, body: "{}", timeoutMs: POST_TIMEOUT_MS, clock };
  return async (signal) => void (await post(endpoint, { ...message, signal }));
}
