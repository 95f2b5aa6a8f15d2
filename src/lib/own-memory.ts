/**
 * The memory of those of `views` that own the whole of theirs, for handing it to another thread. A small Buffer shares
 * a pool with others and is left to be copied.
 */
export function ownMemory(...views: readonly (Uint8Array | undefined)[]): ArrayBuffer[] {
  return views.flatMap((view) => {
    const memory = view?.buffer;
    return memory instanceof ArrayBuffer && memory.byteLength === view?.byteLength ? [memory] : [];
  });
}

/** The same memory as a Buffer, which it is no longer when it comes from another thread. */
export function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

/**
 * Gives a Buffer's memory back at once, when nothing needs it any more: the collector sees only the few bytes of its
 * handle and takes its time over the megabyte behind it.
 */
export function releaseMemory(view: Uint8Array): void {
  for (const memory of ownMemory(view)) memory.transfer(0);
}
