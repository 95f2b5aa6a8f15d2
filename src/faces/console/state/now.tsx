import { useDocumentVisibility } from "@mantine/hooks";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";

const TICK_MS = 15_000;

interface Live {
  readonly nowMs: number;
  readonly isLive: boolean;
  readonly setLive: (isLive: boolean) => void;
}

const Context = createContext<Live | null>(null);

/** Gives the page one time for all its numbers. It moves every 15 seconds while the tab is visible and live is on. */
export function NowProvider({ children }: { readonly children: ReactNode }) {
  const [nowMs, setNow] = useState(() => Date.now());
  const [isLive, setLive] = useState(true);
  const isMoving = useDocumentVisibility() === "visible" && isLive;
  useEffect(() => {
    if (!isMoving) return undefined;
    const move = () => setNow((before) => (Date.now() - before >= TICK_MS / 2 ? Date.now() : before));
    move();
    const timer = setInterval(move, TICK_MS);
    return () => clearInterval(timer);
  }, [isMoving]);
  const live = useMemo(() => ({ nowMs, isLive, setLive }), [nowMs, isLive]);
  return <Context value={live}>{children}</Context>;
}

export function useLive(): Live {
  const live = useContext(Context);
  if (live === null) throw new Error("useLive was called outside NowProvider");
  return live;
}

export function useNow(): number {
  return useLive().nowMs;
}
