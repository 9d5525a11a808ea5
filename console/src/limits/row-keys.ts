import { useState } from 'react';

/** Keys for rows of a form, which follow them when another row is removed: rows hold what was typed. */
export function useRowKeys(count: number): {
  keys: readonly number[];
  add: () => void;
  remove: (index: number) => void;
} {
  const [keys, setKeys] = useState(() => Array.from({ length: count }, (_, index) => index));
  return {
    keys,
    add: () => setKeys([...keys, Math.max(-1, ...keys) + 1]),
    remove: (index) => setKeys(keys.filter((_, at) => at !== index)),
  };
}
