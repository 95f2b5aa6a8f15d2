/** Returns the address of a test database over TCP instead of a socket of the file system, for what relays it or shares its port. */
export function overTcp(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.delete("host");
  return url.href;
}
