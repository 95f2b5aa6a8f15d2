import type { AlertMessage } from "../channel/alert-message.ts";

/** An address as far as somebody may see it who sees no full ones: an IPv4 network of 256, an IPv6 network of /48. */
function maskAddress(ip: string): string {
  const v4 = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.[\d*]{1,3}$/.exec(ip);
  if (v4 !== null) return `${v4[1]}.*`;
  if (!/^[\da-f:]+$/i.test(ip)) return "*";
  const head = (ip.split("::")[0] ?? "").split(":").filter((group) => group !== "");
  return `${[...head, "0", "0", "0"].slice(0, 3).join(":")}:*`;
}

interface CountedValue {
  readonly value: string;
  readonly count: number;
  readonly share: number;
}

/** Counted addresses, masked; networks that are the same now are counted together. */
export function maskRows(rows: readonly CountedValue[]): CountedValue[] {
  const merged = new Map<string, CountedValue>();
  for (const { value, count, share } of rows) {
    const masked = maskAddress(value);
    const seen = merged.get(masked) ?? { value: masked, count: 0, share: 0 };
    merged.set(masked, { ...seen, count: seen.count + count, share: Math.min(seen.share + share, 1) });
  }
  return [...merged.values()];
}

export function maskMessage(message: AlertMessage): AlertMessage {
  return { ...message, top: { ...message.top, ips: maskRows(message.top.ips) } };
}
