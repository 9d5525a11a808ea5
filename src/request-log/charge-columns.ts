import { dollars, integer, text } from './column-domains.js';
import type { Column } from './column.js';

/** The columns for budgets. Only rows to which a budget applies have them. */
export const CHARGE_COLUMNS = {
  charge_usd: {
    type: 'numeric',
    phases: ['begin', 'write'],
    toDomain: dollars,
    description:
      'What the call was charged against budgets in USD: its cost when the row was written, else an estimate. It is ' +
      'changed only when a job that it created is settled, with the budgets, so the sum of the charges is what the budgets count.',
    nullMeans: 'no budget in USD applied to the call.',
    example: '0.000142500',
  },
  charge_tokens: {
    type: 'bigint',
    phases: ['begin', 'write'],
    toDomain: integer(Number.MAX_SAFE_INTEGER),
    description:
      'What the call was charged against budgets in tokens: its input and output tokens, else an estimate. It is ' +
      'changed only when a job that it created is settled.',
    nullMeans: 'no budget in tokens applied to the call.',
  },
  limit_subject: {
    type: 'text',
    toDomain: text,
    phases: ['begin', 'write'],
    description: 'Keyed hash of the end user whose budget the call was charged against.',
    nullMeans: 'no budget per end user applied to the call.',
  },
} as const satisfies Record<string, Column<unknown>>;
