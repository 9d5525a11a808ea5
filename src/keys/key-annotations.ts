import { EFFECTIVE_COST_CENTER, EFFECTIVE_OWNER } from '../teams/annotations.js';

/** What people note about keys that usage is grouped by. */
export const GROUPED_ANNOTATIONS = ['owner', 'cost_center'] as const;
export type GroupedAnnotation = (typeof GROUPED_ANNOTATIONS)[number];

/** Of each key, its own or else those of its team: `key_id`, `owner`, `cost_center`. */
export const KEY_ANNOTATIONS = `
  SELECT k.id AS key_id, ${EFFECTIVE_OWNER} AS owner, ${EFFECTIVE_COST_CENTER} AS cost_center
  FROM gateway_key k JOIN team t ON t.id = k.team_id`;
