import { ForbiddenException, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import type { Access } from '../../admin/access/access.js';
import { endSessions } from '../../admin/sessions/end-sessions.js';
import { SessionRecorder } from '../../admin/sessions/session-recorder.js';
import { teamNamesOf } from '../../admin/oidc/group-roles.js';
import type { OidcIdentity } from '../../admin/oidc/oidc.service.js';
import { audited, type Subject } from '../../audit/audited.js';
import { recordChange } from '../../audit/record-change.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { idOfCursor, isUuid, type Page, pageOf } from '../../database/page.js';
import { patternsOf } from '../../database/search-text.js';
import { transacted } from '../../database/transactions.js';
import { ServiceError } from '../../errors/service-error.js';
import { KeysService } from '../../keys/keys.service.js';
import { isOwnSql } from '../../keys/own-key.js';
import { RecentSignIns } from '../../keys/recent-sign-ins.service.js';
import type { Actor } from '../../platform/actor.js';
import { endPerson, endSignIns } from '../sign-in/end-sign-ins.js';
import { IS_OVER_AT } from '../sign-in/in-force.js';
import { forgetPerson } from './forget-person.js';
import { KEEPS_OUT } from './keeps-out.js';
import { ownerOf, userIdOf } from './person-names.js';
import type {
  EndedPerson,
  KeyOfPerson,
  PersonFilter,
  PersonView,
  ShownPerson,
  SignInFilter,
  SignInView,
} from './people.schema.js';

const LIVE = `si.ended_at IS NULL AND ${IS_OVER_AT} > now()`;

const SELECT_PEOPLE = `
  SELECT p.id, p.name, p.email, p.issuer, p.subject, p.created_at, p.last_sign_in_at, p.ended_at,
         live.sign_ins AS live_sign_ins, live.spent_refused_at, p.version
  FROM person p CROSS JOIN LATERAL (
    SELECT count(*)::int AS sign_ins, max(si.spent_refused_at) AS spent_refused_at
    FROM sign_in si JOIN gateway_key k ON k.id = si.key_id JOIN team t ON t.id = k.team_id
    WHERE si.person_id = p.id AND ${LIVE}) live`;

const LIST = `${SELECT_PEOPLE}
  WHERE ($1::text[] IS NULL OR concat_ws(E'\\n', p.name, p.email) ILIKE ALL ($1))
    AND ($2::text IS NULL OR (p.ended_at IS NOT NULL) = ($2 = 'ended'))
    AND ($3::uuid IS NULL OR p.id < $3)
  ORDER BY p.id DESC LIMIT $4`;

const SELECT_SIGN_INS = `
  SELECT si.id, si.person_id, p.name AS person, si.key_id, t.name || '/' || k.name AS key, si.surface,
         host(si.client_ip) AS client_ip, si.program, si.created_at, si.last_renewed_at, ${IS_OVER_AT} AS expires_at, si.ended_at,
         si.end_reason, si.spent_refused_at
  FROM sign_in si JOIN person p ON p.id = si.person_id JOIN gateway_key k ON k.id = si.key_id JOIN team t ON t.id = k.team_id`;

/** $1 is the user whose sign-ins are seen, as Access.userId says it; null: those of all. */
const IS_SEEN = `($1::text IS NULL OR 'sso:' || p.issuer || '#' || p.subject = $1)`;

const LIST_SIGN_INS = `${SELECT_SIGN_INS}
  WHERE ${IS_SEEN} AND ($2::text IS NULL OR (${LIVE}) = ($2 = 'active')) AND ($3::uuid IS NULL OR si.id < $3)
  ORDER BY si.id DESC LIMIT $4`;

const SIGN_INS_OF = `${SELECT_SIGN_INS} WHERE si.person_id = $1 ORDER BY si.id DESC LIMIT 100`;

/** Also one that is over, and whose end was not noted yet. */
const FIND_SIGN_IN = `${SELECT_SIGN_INS}
  WHERE ${IS_SEEN} AND si.id = $2 AND si.ended_at IS NULL AND si.expires_at > now() FOR UPDATE OF si`;

const KEYS_OF = `
  SELECT k.id, t.name || '/' || k.name AS name, k.origin FROM gateway_key k JOIN team t ON t.id = k.team_id
  WHERE k.revoked_at IS NULL AND (k.person_id = $1 OR ${isOwnSql(2)}) ORDER BY name LIMIT 500`;

/** In the order in which the last use of keys is written. */
const LOCK_OWN_KEYS = `
  SELECT k.id FROM gateway_key k
  WHERE k.revoked_at IS NULL AND k.origin = 'manual' AND (k.person_id = $1 OR ${isOwnSql(2)}) ORDER BY k.id FOR UPDATE`;

/** What people do who sign in to the console is known as well: a person ends as a whole. */
const ADMIT = `
  INSERT INTO person (id, issuer, subject, name, email, last_sign_in_at) VALUES ($1, $2, $3, $4, $5, now())
  ON CONFLICT (issuer, subject) DO UPDATE SET name = EXCLUDED.name, email = EXCLUDED.email, last_sign_in_at = now()
  WHERE person.ended_at IS NULL
  RETURNING id`;

const BLOCKED_TEAMS = `
  SELECT t.name FROM person p JOIN gateway_key k ON ${KEEPS_OUT} JOIN team t ON t.id = k.team_id
  WHERE p.id = $1 GROUP BY t.name ORDER BY t.name LIMIT 500`;

const REOPEN = `
  UPDATE person p SET ended_at = NULL, reopened_at = now(), version = version + 1
  WHERE id = $1 AND (ended_at IS NOT NULL OR EXISTS (SELECT FROM gateway_key k WHERE ${KEEPS_OUT}))
  RETURNING id`;

type Row<View> = {
  [Name in keyof View]: Name extends `${string}_at` ? Date | Extract<View[Name], null> : View[Name];
};

/** People who sign in by single sign-on, and what they have: sessions of the console, sign-ins from clients, own keys. */
@Injectable()
export class PeopleService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly keys: KeysService,
    private readonly sessions: SessionRecorder,
    private readonly recent: RecentSignIns,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * Notes a person who signs in to the console, and extends their own keys in their teams.
   *
   * @throws ForbiddenException for one who was ended
   */
  async admit({ issuer, subject, displayName, email, groups }: OidcIdentity): Promise<void> {
    const values = [uuidv7(), issuer, subject, displayName ?? email ?? subject, email];
    await this.dataSource.transaction(async (manager) => {
      const admitted = await manager.query<object[]>(ADMIT, values);
      if (admitted.length === 0)
        throw new ForbiddenException('Your access was ended. Ask an administrator to open it again.');
      const { led, own } = teamNamesOf(groups ?? [], this.env);
      await this.recent.extend(manager, ownerOf({ issuer, subject, email }), [...led, ...own]);
    });
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ search, state, limit, cursor }: PersonFilter): Promise<Page<PersonView>> {
    const values = [
      search === undefined ? null : patternsOf(search),
      state ?? null,
      idOfCursor(cursor),
      limit + 1,
    ];
    const rows = await this.dataSource.query<Row<PersonView>[]>(LIST, values);
    return pageOf(rows, limit, viewOf<PersonView>);
  }

  /** @throws ServiceError not_found; invalid for an address of several people */
  async get(idOrEmail: string): Promise<ShownPerson> {
    const { manager } = this.dataSource;
    const person = await find(manager, idOrEmail);
    const signIns = await manager.query<Row<SignInView>[]>(SIGN_INS_OF, [person.id]);
    return {
      ...person,
      keys: await keysOf(manager, person),
      blocked_teams: await blockedTeams(manager, person.id),
      sign_ins: signIns.map(viewOf<SignInView>),
    };
  }

  /** Sign-ins from clients, newest first: for whoever sees only some teams, their own. */
  async signIns({ state, limit, cursor }: SignInFilter, by: Access): Promise<Page<SignInView>> {
    const values = [seenBy(by), state ?? null, idOfCursor(cursor), limit + 1];
    const rows = await this.dataSource.query<Row<SignInView>[]>(LIST_SIGN_INS, values);
    return pageOf(rows, limit, viewOf<SignInView>);
  }

  /** Ends a sign-in. Its tokens stop working within a second. @throws ServiceError not_found, also for that of somebody else */
  async endSignIn(id: string, by: Access): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const [found] = isUuid(id)
        ? await manager.query<Row<SignInView>[]>(FIND_SIGN_IN, [by.role === 'admin' ? null : by.userId, id])
        : [];
      if (found === undefined)
        throw ServiceError.of(
          'not_found',
          'id',
          'no sign-in that goes on has this id; list the sign-ins to find it',
        );
      await endSignIns(manager, [{ id }], 'ended', by.actor);
    });
  }

  /**
   * Ends a person, in one transaction: they cannot sign in, their sessions and sign-ins end, and their own keys are revoked.
   * Within a second, nothing of theirs works on any replica. The second time it ends what has come since.
   *
   * @throws ServiceError not_found; invalid for an address of several people
   */
  async end(idOrEmail: string, by: Actor): Promise<EndedPerson> {
    return transacted(this.dataSource.manager, async (manager) => {
      const before = await find(manager, idOrEmail);
      // It locks them itself: requests of clients first, as their confirmation does.
      const isNew = await endPerson(manager, before.id, by);
      const sessions = await endSessions(manager, this.sessions, { userId: userIdOf(before) }, by);
      const own = await manager.query<{ id: string }[]>(LOCK_OWN_KEYS, [before.id, ...ownerOf(before)]);
      for (const { id } of own) await this.keys.in(manager).revoke(id, by);
      const ended = { sign_ins: before.live_sign_ins, sessions, keys: own.length };
      const after = await find(manager, before.id);
      if (isNew || Object.values(ended).some((count) => count > 0)) {
        const change = { action: 'ended', type: 'person', before: recorded(before), after: recorded(after) };
        await recordChange(manager, by, { ...change, more: { ended } });
      }
      return { ...after, ended };
    });
  }

  /** Lets a person sign in again, also in teams where their sign-in key was revoked. What was revoked stays so. @throws ServiceError as end() */
  reopen(idOrEmail: string, by: Actor): Promise<PersonView> {
    const request = { id: idOrEmail, action: 'reopened', by };
    return audited(this.dataSource.manager, PERSON, request, async (manager, { id }) => {
      const teams = await blockedTeams(manager, id);
      const [rows] = await manager.query<[object[], number]>(REOPEN, [id]);
      if (rows.length === 0) return null;
      return teams.length === 0 ? {} : { teams };
    });
  }

  /**
   * Removes the name and e-mail address of a person who was ended: of the person, their keys, rows and changes.
   *
   * @throws ServiceError as end(); conflict for a person who was not ended
   */
  async forget(idOrEmail: string, by: Actor): Promise<PersonView> {
    const { manager } = this.dataSource;
    const { id } = await find(manager, idOrEmail);
    await forgetPerson(this.dataSource, id, by);
    return find(manager, id);
  }
}

/** Their names. */
async function blockedTeams(manager: EntityManager, id: string): Promise<string[]> {
  const teams = await manager.query<{ name: string }[]>(BLOCKED_TEAMS, [id]);
  return teams.map(({ name }) => name);
}

/** Whose sign-ins are seen. */
function seenBy({ scope, userId }: Access): string | null {
  return scope === null ? null : userId;
}

const PERSON: Subject<PersonView> = {
  type: 'person',
  lock: async (manager, idOrEmail) => {
    const { id } = await find(manager, idOrEmail);
    await manager.query('SELECT FROM person WHERE id = $1 FOR NO KEY UPDATE', [id]);
    return id;
  },
  find,
  shown: recorded,
};

function recorded({ id, name, email, ended_at }: PersonView) {
  return { id, name, email, ended_at };
}

async function find(manager: EntityManager, idOrEmail: string): Promise<PersonView> {
  const condition = isUuid(idOrEmail) ? 'p.id = $1' : 'lower(p.email) = lower($1)';
  const rows = await manager.query<Row<PersonView>[]>(
    `${SELECT_PEOPLE} WHERE ${condition} ORDER BY p.id LIMIT 2`,
    [idOrEmail],
  );
  if (rows.length === 0)
    throw ServiceError.of(
      'not_found',
      'id',
      'nobody who signed in here has this ID or e-mail address; list the people',
    );
  if (rows.length > 1)
    throw ServiceError.of('invalid', 'id', 'is the e-mail address of several people; give the ID of one');
  return viewOf<PersonView>(rows[0]!);
}

async function keysOf(manager: EntityManager, person: PersonView): Promise<KeyOfPerson[]> {
  return manager.query<KeyOfPerson[]>(KEYS_OF, [person.id, ...ownerOf(person)]);
}

function viewOf<View extends object>(row: Row<View>): View {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]),
  ) as View;
}
