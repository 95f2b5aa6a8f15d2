import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { ROUTES } from "../routes.tsx";
import { usePageLink } from "../state/url-state.ts";
import { SEARCH_ID } from "./header.tsx";

const Palette = lazy(() => import("./palette.tsx"));
const KeyHelp = lazy(async () => ({ default: (await import("./palette.tsx")).KeyHelp }));
const SECOND_KEY_MS = 1_200;

/** Whether the reader writes, so that letters are text and no commands. */
function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** The keys that work on every page: `/`, `?`, `g` with a letter, Ctrl K. */
export function ShellKeys() {
  const [shown, show] = useState<"palette" | "help" | null>(null);
  const [, navigate] = useLocation();
  const link = usePageLink();
  // Not 0: a key within a second after the page was loaded would be the second one.
  const goneAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        show("palette");
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      const isSecond = event.timeStamp - goneAt.current < SECOND_KEY_MS;
      goneAt.current = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
      const page = isSecond ? ROUTES.find(({ nav }) => nav?.key === event.key) : undefined;
      if (page !== undefined) navigate(link(page.path));
      else if (event.key === "?") show("help");
      else if (event.key === "/") {
        event.preventDefault();
        const box = document.getElementById(SEARCH_ID);
        if (box?.checkVisibility()) box.focus();
        else navigate(link("/explorer"));
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [link, navigate]);
  return (
    <Suspense fallback={null}>
      {shown === "palette" ? <Palette onClose={() => show(null)} onHelp={() => show("help")} /> : null}
      {shown === "help" ? <KeyHelp onClose={() => show(null)} /> : null}
    </Suspense>
  );
}
