/** A model as a request names it, or why it is not certain. */
export interface NamedModel {
  model: string | null;
  problem: string | null;
}

/** `model[]` and `model[0]` are arrays to many parsers of queries and forms. */
export function isModelName(name: string): boolean {
  return /^\s*model\s*(?:\[|$)/i.test(name);
}
