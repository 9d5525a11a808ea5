import { useEffect, useId, useSyncExternalStore } from 'react';

/** The dialogs and drawers that are open, the one on top last. */
let layers: readonly string[] = [];
const listeners = new Set<() => void>();

function change(next: readonly string[]): void {
  layers = next;
  for (const tell of listeners) tell();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether a dialog or drawer is on top of all others: Escape closes that one alone. */
export function useTopLayer(opened: boolean): boolean {
  const id = useId();
  useEffect(() => {
    if (!opened) return;
    change([...layers, id]);
    return () => change(layers.filter((other) => other !== id));
  }, [id, opened]);
  return useSyncExternalStore(subscribe, () => layers.at(-1) === id);
}
