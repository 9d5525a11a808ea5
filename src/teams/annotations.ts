import { Column } from 'typeorm';
import { z } from 'zod';
import { searchText, UNPRINTABLE } from '../admin/fields.schema.js';
import { containsKeyFormat } from '../platform/api-key.js';

const MAX_LENGTH = 200;
const MAX_NOTE_LENGTH = 2_000;

/** What people note about a team or a key. No call is decided by it. */
export interface Annotations {
  owner: string | null;
  contact: string | null;
  cost_center: string | null;
  note: string | null;
}

/** Their names in the API. */
export const ANNOTATIONS = [
  'owner',
  'contact',
  'cost_center',
  'note',
] as const satisfies readonly (keyof Annotations)[];

/** The columns of teams and keys. */
export abstract class Annotated {
  /** Not `owner`: a key has a column of that name, which says whose own it is and who may revoke it. */
  @Column('text', { name: 'owned_by', nullable: true, comment: 'Who owns it: a person or a group.' })
  ownedBy!: string | null;

  @Column('text', { nullable: true, comment: 'Whom to ask: a person or a channel.' })
  contact!: string | null;

  @Column('text', {
    name: 'cost_center',
    nullable: true,
    comment: 'Who is charged; of a key null for that of its team.',
  })
  costCenter!: string | null;

  @Column('text', { nullable: true, comment: 'Free text.' })
  note!: string | null;
}

/** The columns of a row, under their names in the API. @param owner SQL of the owner */
export const annotationsSql = (row: string, owner = `${row}.owned_by`): string =>
  `${owner} AS owner, ${row}.contact, ${row}.cost_center, ${row}.note`;

/** The owner of the key `k`: of a key that a member created for themselves, always that member. */
export const KEY_OWNER = 'COALESCE(k.owner, k.owned_by)';

/** Of the row `k` of a key and `t` of its team. */
export const EFFECTIVE_OWNER = 'COALESCE(k.owner, k.owned_by, t.owned_by)';
export const EFFECTIVE_CONTACT = 'COALESCE(k.contact, t.contact)';
export const EFFECTIVE_COST_CENTER = 'COALESCE(k.cost_center, t.cost_center)';

/** The same members under the names of the entity. */
export function withAnnotationColumns<T extends Partial<Annotations>>({ owner, cost_center, ...others }: T) {
  return { ...others, ownedBy: owner, costCenter: cost_center };
}

export function annotationsOf({ ownedBy, contact, costCenter, note }: Annotated): Annotations {
  return { owner: ownedBy, contact, cost_center: costCenter, note };
}

const INHERITED = 'Of a key: null for that of its team.';
const about = {
  owner: {
    description:
      `Who owns it, such as a person or a group. \`GET /admin/v1/usage?group_by=owner\` sums by it. ${INHERITED} Of a key ` +
      'with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.',
    example: 'jane@example.com',
  },
  contact: {
    description: `Whom to ask, such as a person or a channel. ${INHERITED}`,
    example: '#search-oncall',
  },
  cost_center: {
    description: `Who is charged. \`GET /admin/v1/usage?group_by=cost_center\` sums by it. ${INHERITED}`,
    example: 'CC-4711',
  },
  note: { description: 'Free text, for people.', example: 'Nightly batch of the ranking model.' },
};

const LINE = `must be text of 1 to ${MAX_LENGTH} printable characters without spaces at its ends; null for none`;
const NOTE = `must be text of 1 to ${MAX_NOTE_LENGTH} characters, without control characters but line ends; null for none`;
const SECRET = 'must not contain a gateway key';

const line = z
  .string(LINE)
  .refine((text) => text.length > 0 && [...text].length <= MAX_LENGTH, LINE)
  .refine((text) => text.trim() === text && !UNPRINTABLE.test(text), LINE)
  .refine((text) => !containsKeyFormat(text), SECRET)
  .nullable();
const note = z
  .string(NOTE)
  .refine((text) => text.trim().length > 0 && [...text].length <= MAX_NOTE_LENGTH, NOTE)
  .refine((text) => !UNPRINTABLE.test(text.replace(/\r?\n|\t/g, ' ')), NOTE)
  .refine((text) => !containsKeyFormat(text), SECRET)
  .nullable();

/** Members of a view. */
export const annotationsView = {
  owner: z.string().nullable().meta(about.owner),
  contact: z.string().nullable().meta(about.contact),
  cost_center: z.string().nullable().meta(about.cost_center),
  note: z.string().nullable().meta(about.note),
};

/** Members of a new team or key. */
export const newAnnotations = {
  owner: line.default(null).meta(about.owner),
  contact: line.default(null).meta(about.contact),
  cost_center: line.default(null).meta(about.cost_center),
  note: note.default(null).meta(about.note),
};

/** Members of a change. */
export const annotationsChange = {
  owner: line.optional().meta(about.owner),
  contact: line.optional().meta(about.contact),
  cost_center: line.optional().meta(about.cost_center),
  note: note.optional().meta(about.note),
};

/** Filters of a list. @param of what is listed, such as `teams` */
export const annotationFilters = (of: string, own = '') => ({
  owner: searchText()
    .optional()
    .meta({ description: `Only ${of} with this owner${own}.`, example: about.owner.example }),
  contact: searchText()
    .optional()
    .meta({ description: `Only ${of} with this contact${own}.`, example: about.contact.example }),
  cost_center: searchText()
    .optional()
    .meta({ description: `Only ${of} with this cost center${own}.`, example: about.cost_center.example }),
});
export type AnnotationFilter = Partial<Record<'owner' | 'contact' | 'cost_center', string>>;
