import type { SendOptions, SendResult } from "./notifier.ts";

const PROGRESS = /^part (\d{1,3})(?: (.*))?$/s;

/**
 * Sends a message of several parts in order and skips the parts that an earlier attempt has sent, so that a retry does
 * not notify twice. `sendPart` gets the reference that the part before returned and returns the next one.
 */
export async function sendParts(
  count: number,
  { progress, onProgress, providerReference }: SendOptions,
  sendPart: (index: number, reference: string | null) => Promise<string | null>,
): Promise<SendResult> {
  const [, done, reached] = PROGRESS.exec(progress ?? "") ?? [];
  const from = Math.min(Number(done ?? 0), count);
  let reference = from === 0 ? providerReference : (reached ?? null);
  for (let index = from; index < count; index += 1) {
    reference = await sendPart(index, reference);
    if (index < count - 1) onProgress?.(`part ${index + 1}${reference === null ? "" : ` ${reference}`}`);
  }
  const messages = count - from;
  return { providerReference: reference, ...(messages === 1 ? {} : { messages }) };
}
