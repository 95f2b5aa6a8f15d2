/**
 * Returns the buffers of those `views` that own the whole of their memory, for transferring it to another thread. A
 * small Buffer shares a pool with others and is left to be copied.
 */
export function ownMemory(...views: readonly (Uint8Array | undefined)[]): ArrayBuffer[] {
  return views.flatMap((view) => {
    const memory = view?.buffer;
    return memory instanceof ArrayBuffer && memory.byteLength === view?.byteLength ? [memory] : [];
  });
}

/** Returns the same memory as a Buffer, because memory from another thread arrives as a plain Uint8Array. */
export function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

/**
 * Releases a Buffer's memory at once, when nothing needs it any more. The collector sees only the few bytes of its
 * handle and would delay releasing the megabyte behind it.
 */
export function releaseMemory(view: Uint8Array): void {
  for (const memory of ownMemory(view)) memory.transfer(0);
}

/** The length from which on V8 makes a part of a text a reference to the whole. */
const REFERENCE_CHARS = 13;

/** Returns a text that does not keep in memory the larger text of which it is a part. */
export function ownText(text: string): string {
  return text.length < REFERENCE_CHARS ? text : Buffer.from(text).toString();
}
