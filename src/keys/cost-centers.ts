import { EFFECTIVE_COST_CENTER } from '../teams/annotations.js';

/** The cost center of each key that has one, of its own or of its team: `key_id`, `cost_center`. */
export const COST_CENTERS = `
  SELECT k.id AS key_id, ${EFFECTIVE_COST_CENTER} AS cost_center
  FROM gateway_key k JOIN team t ON t.id = k.team_id
  WHERE ${EFFECTIVE_COST_CENTER} IS NOT NULL`;
