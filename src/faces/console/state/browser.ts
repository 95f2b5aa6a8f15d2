/** What the browser offers: the clipboard, notices and the sign of the tab. */

import { useFavicon } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { showIso } from "#lib/format.ts";
import idleIcon from "../style/icon.svg";
import firingIcon from "../style/icon-firing.svg";
import { type Params, withParams } from "./url-state.ts";
import { useStatus } from "./zones.ts";

/** Copies a text; returns whether that worked. Without TLS a browser has no clipboard, but knows the older way. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}

/** Saves a file under a name, as a link to it does. */
export function saveFile(name: string, content: Blob): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(content);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}

/** Quotes a text for a POSIX shell. */
export function quoteForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A short text that disappears by itself after so many milliseconds, and the function that says it. */
export function useNote(shownMs: number): readonly [note: string | null, say: (text: string) => void] {
  const [note, setNote] = useState<{ readonly text: string } | null>(null);
  useEffect(() => {
    if (note === null) return undefined;
    const timer = setTimeout(() => setNote(null), shownMs);
    return () => clearTimeout(timer);
  }, [note, shownMs]);
  return [note?.text ?? null, (text) => setNote({ text })];
}

/** The address of this page with fixed times, so that somebody else sees the same. */
export function shareLink(
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  params: Params = {},
): string {
  const { origin, pathname, search } = globalThis.location;
  const query = withParams(search, { span: null, from: showIso(fromMs), to: showIso(toMs), ...params });
  return `${origin}${pathname}?${query}`;
}

const STORED = "longwatch-desktop-notices";

/** Whether the reader asked for a desktop notification of each new alert in this browser. */
export function areDesktopNoticesOn(): boolean {
  return (
    typeof Notification !== "undefined" &&
    Notification.permission === "granted" &&
    localStorage.getItem(STORED) === "on"
  );
}

export function useDesktopNotices() {
  const [isOn, setOn] = useState(areDesktopNoticesOn);
  return {
    canAsk: typeof Notification !== "undefined" && Notification.permission !== "denied",
    isOn,
    toggle: async () => {
      if (isOn) localStorage.removeItem(STORED);
      else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(STORED, "on");
      setOn(areDesktopNoticesOn());
    },
  };
}

const COUNT = /^\(\d+\) /;

/** Shows in the tab's title and icon how many alerts fire. */
export function useTabSign(): void {
  const firing = useStatus().data?.alertsFiring ?? 0;
  useFavicon(firing > 0 ? firingIcon : idleIcon);
  useEffect(() => {
    const sign = () => {
      const bare = document.title.replace(COUNT, "");
      const title = firing > 0 ? `(${firing}) ${bare}` : bare;
      if (document.title !== title) document.title = title;
    };
    sign();
    // Pages set their title themselves.
    const observer = new MutationObserver(sign);
    observer.observe(document.head, { childList: true, subtree: true, characterData: true });
    return () => observer.disconnect();
  }, [firing]);
}
