import { type ErrorDetail, ServiceError, type ServiceErrorKind } from './errors/service-error.js';

/** The former names. */
export type FaultDetail = ErrorDetail;
export type FaultKind = ServiceErrorKind;
export const Fault = ServiceError;
export type Fault = ServiceError;
