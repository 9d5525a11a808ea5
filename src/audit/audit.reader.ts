import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { idOfCursor, type Page, pageOf } from '../database/page.js';
import type { AuditFilter, AuditView } from './audit.schema.js';

type AuditRow = Omit<AuditView, 'at'> & { at: Date };

const LIST = `
  SELECT id, at, actor, host(client_ip) AS client_ip, action, subject_type, subject_id, subject_name, before, after
  FROM audit_log
  WHERE ($1::text IS NULL OR actor = $1)
    AND ($2::text IS NULL OR action = $2)
    AND ($3::text IS NULL OR subject_type = $3)
    AND ($4::uuid IS NULL OR subject_id = $4)
    AND ($5::text IS NULL OR subject_name = $5)
    AND ($6::timestamptz IS NULL OR at >= $6)
    AND ($7::timestamptz IS NULL OR at < $7)
    AND ($8::uuid IS NULL OR id < $8)
  ORDER BY id DESC
  LIMIT $9`;

/** Lists audit log entries. */
@Injectable()
export class AuditReader {
  constructor(private readonly dataSource: DataSource) {}

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ limit, cursor, ...filter }: AuditFilter): Promise<Page<AuditView>> {
    const { actor, action, subject_type, subject_id, subject_name, from, to } = filter;
    const wanted = [actor, action, subject_type, subject_id, subject_name, from, to];
    const values = [...wanted.map((value) => value ?? null), idOfCursor(cursor), limit + 1];
    return pageOf(await this.dataSource.query<AuditRow[]>(LIST, values), limit, (row) => ({
      ...row,
      at: row.at.toISOString(),
    }));
  }
}
