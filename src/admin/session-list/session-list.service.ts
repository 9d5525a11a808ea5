import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Access } from '../access/access.js';
import { type RecordedSession, SessionRecorder } from '../sessions/session-recorder.js';
import { SELECT_SESSIONS, type SessionRow, USER_ID } from '../sessions/session-rows.js';
import { SessionsService } from '../sessions/sessions.service.js';
import { idOfCursor, isUuid, type Page, pageOf } from '../../database/page.js';
import { ServiceError } from '../../errors/service-error.js';
import type { SessionFilter, SessionView } from './sessions.schema.js';

const LIST = `${SELECT_SESSIONS}
  AND ($3::text IS NULL OR ${USER_ID} = $3)
  AND ($4::text IS NULL OR s.actor = $4)
  AND ($5::uuid IS NULL OR s.id < $5)
  ORDER BY s.id DESC LIMIT $6`;

/** $1 is the user whose sessions may be ended; null: all. */
const END = (condition: string) => `
  DELETE FROM admin_session WHERE id IN (
    SELECT s.id FROM admin_session s WHERE ($1::text IS NULL OR ${USER_ID} = $1) AND ${condition}
    ORDER BY s.id FOR UPDATE)
  RETURNING id, actor AS name, role, expires_at`;
const END_ONE = END('s.id = $2');
const END_OF = END('s.actor = $2');

/** Lists and ends sessions of the console: administrators those of everybody, others their own. */
@Injectable()
export class SessionListService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly sessions: SessionsService,
    private readonly recorder: SessionRecorder,
  ) {}

  /** Those that have not ended, newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ actor, limit, cursor }: SessionFilter, by: Access): Promise<Page<SessionView>> {
    const { token, singleSignOn } = this.sessions.settings;
    const values = [token, singleSignOn, ownerOf(by), actor ?? null, idOfCursor(cursor), limit + 1];
    const rows = await this.dataSource.query<SessionRow[]>(LIST, values);
    return pageOf(rows, limit, (row) => sessionView(row, by));
  }

  /** @throws ServiceError not_found, also for the session of somebody else */
  async end(id: string, by: Access): Promise<void> {
    if (isUuid(id) && (await this.remove(END_ONE, id, by)) > 0) return;
    throw ServiceError.of('not_found', 'id', 'no session has this id; list the sessions to find it');
  }

  /** Ends every session of a user. @param actor as in the audit log @returns how many there were */
  endAllOf(actor: string, by: Access): Promise<number> {
    return this.remove(END_OF, actor, by);
  }

  private remove(sql: string, value: string, by: Access): Promise<number> {
    return this.dataSource.transaction(async (manager) => {
      const [rows] = await manager.query<[RecordedSession[], number]>(sql, [ownerOf(by), value]);
      for (const row of rows) await this.recorder.record(manager, by.actor, 'ended', row);
      return rows.length;
    });
  }
}

/** The user to whose sessions this access is limited; null: none. */
function ownerOf({ role, userId }: Access): string | null {
  return role === 'admin' ? null : userId;
}

function sessionView(row: SessionRow, by: Access): SessionView {
  return {
    id: row.id,
    actor: row.actor,
    role: row.role,
    teams: row.teams,
    client_ip: row.client_ip,
    created_at: row.created_at.toISOString(),
    last_seen_at: row.last_seen_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    current: row.id === by.sessionId,
  };
}
