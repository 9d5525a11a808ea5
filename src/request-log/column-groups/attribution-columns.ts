import { tagsJson, text } from '../column-domains.js';
import type { Column } from '../column.js';

export const NOT_SENT = 'the client sent none or the text contained a gateway key.';

/** The columns of `request_log` that say whom a call was for, as its client named them. */
export const ATTRIBUTION_COLUMNS = {
  end_user: {
    type: 'text',
    phases: ['begin'],
    toDomain: text,
    description: 'The end user that the client named. Stored as `REQUEST_LOG_USERS` says.',
    nullMeans: NOT_SENT,
  },
  session_id: {
    type: 'text',
    phases: ['begin'],
    toDomain: text,
    description: 'The session that the client named.',
    nullMeans: NOT_SENT,
  },
  tags: {
    type: 'jsonb',
    phases: ['begin'],
    toDomain: tagsJson,
    description: 'The tags of the `x-gateway-tags` header, as a JSON object of strings.',
    nullMeans: NOT_SENT,
  },
} as const satisfies Record<string, Column<unknown>>;
