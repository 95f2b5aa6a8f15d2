import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import type { FileHash } from "./files.ts";

/**
 * A tar archive in the ustar format (POSIX.1-1988), with the size field of GNU tar for members of 8 GiB or more. The package
 * `tar-stream` finds a header only behind the whole content before it, writes one only before a content of known size, and
 * accepts a file that lacks its end.
 */
const BLOCK = 512;
const SIZE = { at: 124, length: 12 };
const CHECKSUM = { at: 148, length: 8 };
const MOST_OCTAL_BYTES = 0o77777777777;
const MOST_NAME_BYTES = 100;

export interface TarMember {
  readonly name: string;
  /** Offset of the member's content in the file. */
  readonly offset: number;
  readonly bytes: number;
}

/** Thrown if a file is no tar archive or ends too early. */
export class TarError extends Error {
  override readonly name = "TarError";
}

/**
 * Writes members into an open, empty file. The content is streamed, and the header before it is written once the size is
 * known.
 */
export function createTarWriter(file: FileHandle, mtimeMs: number) {
  let end = 0;
  return {
    async add(name: string, content: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<FileHash> {
      const hash = createHash("sha256");
      let bytes = 0;
      for await (const chunk of content) {
        hash.update(chunk);
        await writeAll(file, chunk, end + BLOCK + bytes);
        bytes += chunk.length;
      }
      await writeAll(file, toTarHeader(name, bytes, mtimeMs), end);
      end += BLOCK + toBlocks(bytes);
      return { sha256: hash.digest("hex"), bytes };
    },
    /** Writes the end of the archive. */
    finish: () => writeAll(file, Buffer.alloc(2 * BLOCK), end),
  };
}

/**
 * Lists the members of an open file without reading their content.
 * @throws {TarError}
 */
export async function listTar(file: FileHandle): Promise<TarMember[]> {
  const { size } = await file.stat();
  const members: TarMember[] = [];
  const header = Buffer.alloc(BLOCK);
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(header, 0, BLOCK, at);
    if (bytesRead < BLOCK)
      throw new TarError(`the file ends at byte ${size}, before the end of the tar archive`);
    if (header.every((byte) => byte === 0)) return members;
    const bytes = readSize(header);
    if (readOctal(header, CHECKSUM) !== checksumOf(header) || bytes === null)
      throw new TarError(`there is no tar header at byte ${at}`);
    const member = { name: readName(header), offset: at + BLOCK, bytes };
    if (member.offset + bytes > size)
      throw new TarError(`the file ends at byte ${size}, inside the member ${member.name}`);
    members.push(member);
    at = member.offset + toBlocks(bytes);
  }
}

function toBlocks(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

/** Returns the block before the content of a member. */
export function toTarHeader(name: string, bytes: number, mtimeMs: number): Buffer {
  if (Buffer.byteLength(name) > MOST_NAME_BYTES) throw new RangeError(`too long for a tar header: ${name}`);
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  header.write(name, 0);
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  if (bytes <= MOST_OCTAL_BYTES) octal(bytes, SIZE.at, SIZE.length);
  else {
    header.writeUInt8(0x80, SIZE.at);
    header.writeBigUInt64BE(BigInt(bytes), SIZE.at + SIZE.length - 8);
  }
  octal(Math.floor(mtimeMs / 1_000), 136, 12);
  header.write("0", 156, "latin1");
  header.write("ustar\u000000", 257, "latin1");
  header.write(`${checksumOf(header).toString(8).padStart(6, "0")}\0 `, CHECKSUM.at, "latin1");
  return header;
}

/** Returns the sum of the header's bytes, with blanks in the place of the sum. */
function checksumOf(header: Buffer): number {
  const isSum = (at: number) => at >= CHECKSUM.at && at < CHECKSUM.at + CHECKSUM.length;
  return header.reduce((sum, byte, at) => sum + (isSum(at) ? 0x20 : byte), 0);
}

function readSize(header: Buffer): number | null {
  if (header.readUInt8(SIZE.at) !== 0x80) return readOctal(header, SIZE);
  return Number(header.readBigUInt64BE(SIZE.at + SIZE.length - 8));
}

function readOctal(header: Buffer, { at, length }: { at: number; length: number }): number | null {
  const [, digits] = /^\s*([0-7]+)[\s\0]*$/.exec(header.toString("latin1", at, at + length)) ?? [];
  return digits === undefined ? null : Number.parseInt(digits, 8);
}

function readName(header: Buffer): string {
  const end = header.indexOf(0);
  return header.toString("utf8", 0, end === -1 || end > MOST_NAME_BYTES ? MOST_NAME_BYTES : end);
}

async function writeAll(file: FileHandle, data: Buffer, at: number): Promise<void> {
  for (let written = 0; written < data.length; ) {
    const { bytesWritten } = await file.write(data, written, data.length - written, at + written);
    written += bytesWritten;
  }
}
