/** How long a client waits before it reconnects. */
const RETRY_MS = 3_000;

/** One event of the stream. JSON has no bare line breaks, so that no text inside can end the field or begin another. */
export function toSseEvent(event: { id: number; name: string; data: object }): string {
  return `id: ${event.id}\nevent: ${event.name}\ndata: ${JSON.stringify(event.data)}\n\n`;
}

/** Keeps the connection open, and moves the client's last id past what it may not see. */
export function toSseHeartbeat(id: number): string {
  return `: heartbeat\nid: ${id}\n\n`;
}

export const SSE_OPENING = `retry: ${RETRY_MS}\n: Longwatch alerts\n\n`;
