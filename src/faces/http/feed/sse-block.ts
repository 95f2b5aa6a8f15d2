/** Time that a client waits before it reconnects. */
const RETRY_MS = 3_000;

/** Returns an event of the stream. JSON has no bare line breaks, so no text can end the field. */
export function toSseEvent(event: { id: number; name: string; data: object }): string {
  return `id: ${event.id}\nevent: ${event.name}\ndata: ${JSON.stringify(event.data)}\n\n`;
}

/** Keeps the connection open, and moves the client's last id past transitions that it may not see. */
export function toSseHeartbeat(id: number): string {
  return `: heartbeat\nid: ${id}\n\n`;
}

export const SSE_OPENING = `retry: ${RETRY_MS}\n: Longwatch alerts\n\n`;
