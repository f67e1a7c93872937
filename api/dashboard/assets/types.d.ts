/** Generated from api/schemas by `make docs`; do not edit. */

export interface Activity {
  bucket_seconds: number;
  since: string;
  used: Array<string>;
}

export interface ArchiveItem {
  archive_op_id: string;
  size_bytes: number | null;
  sha256: string | null;
  created_at: string;
  verified_at: string | null;
  current: boolean;
  orphan_since: string | null;
  given_up_at: string | null;
  removed_at: string | null;
}

export interface ArchiveList {
  items: Array<ArchiveItem>;
}

export interface ArchiveOption {
  archive_op_id: string;
  created_at: string | null;
  size_bytes: number | null;
  verified_at: string | null;
  current: boolean;
}

export type Audience =
  | "users"
  | "public";

export interface AuditItem {
  id: number;
  at: string;
  action: string;
  outcome: "success" | "failure";
  actor: string;
  actor_id: string | null;
  address: string | null;
  target: string | null;
  target_id: string | null;
  detail: Record<string, any>;
}

export interface AuditPage {
  items: Array<AuditItem>;
  next_cursor: string | null;
}

export interface AuthenticatorSecret {
  secret: string;
  uri: string;
  qr_code: QrCodeView;
}

export interface AuthenticatorView {
  available: boolean;
  enabled_at: string | null;
  recovery_codes_left: number;
  required: boolean;
}

export interface BulkRecovered {
  recovered: Array<string>;
  refused: Array<Refused>;
}

export type Code =
  | "INVALID_REQUEST"
  | "UNAUTHORIZED"
  | "SECOND_FACTOR_REQUIRED"
  | "FORBIDDEN"
  | "WRONG_PASSWORD"
  | "REAUTHENTICATION_REQUIRED"
  | "CSRF_TOKEN_MISSING"
  | "NOT_FOUND"
  | "WORKSPACE_NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "INVALID_STATE"
  | "OPERATION_IN_PROGRESS"
  | "CONFLICT"
  | "PRECONDITION_FAILED"
  | "BODY_TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "LIMIT_EXCEEDED"
  | "DISK_LIMIT_EXCEEDED"
  | "TOO_MANY_REQUESTS"
  | "INTERNAL_ERROR"
  | "UPSTREAM_UNAVAILABLE"
  | "DEPENDENCY_UNAVAILABLE";

export interface ConditionView {
  status: Status;
  reason: string;
  message: string;
  last_transition_time: string | null;
}

export interface CreatedToken {
  id: string;
  name: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  scopes: Array<Scope> | null;
  workspaces: Array<string> | null;
  token: string;
}

export interface CurrentArchive {
  size_bytes: number | null;
  created_at: string | null;
}

export interface Deletion {
  workspace: Workspace;
  purge: boolean;
  message: string;
}

export interface DependencyHealth {
  name: string;
  required: boolean;
  healthy: boolean;
  version: string | null;
  error: string | null;
  milliseconds: number;
}

export type DesiredState =
  | "ARCHIVED"
  | "STANDBY"
  | "RUNNING"
  | "DELETED";

export interface Disk {
  used_bytes: number | null;
  limit_bytes: number | null;
  own_limit_bytes: number | null;
  level: DiskLevel;
  complete: boolean;
  measured_at: string | null;
  message: string | null;
}

export type DiskLevel =
  | "ok"
  | "high"
  | "critical"
  | "over";

export interface Editor {
  image_ref: string;
  default: boolean;
}

export interface EditorList {
  items: Array<Editor>;
  other_images: boolean;
}

export interface EgressItem {
  hour: string;
  name: string;
  port: number;
  verdict: Verdict;
  count: number;
  workspace_id: string;
  workspace: string | null;
  owner: string | null;
}

export type EgressMode =
  | "open"
  | "allow-list"
  | "none";

export interface EgressPage {
  items: Array<EgressItem>;
  next_cursor: string | null;
}

export interface ErrorBody {
  error: Problem;
}

export type ErrorReason =
  | "Timeout"
  | "RetryExceeded"
  | "ActionFailed"
  | "DataLost"
  | "Unreachable"
  | "ImagePullFailed"
  | "ContainerWithoutVolume"
  | "ArchiveCorrupted";

export interface ErrorView {
  reason: ErrorReason;
  message: string | null;
  explanation: string;
  recover_choices: Array<RecoverChoice>;
}

export interface EventItem {
  id: number;
  at: string;
  kind: string;
  actor: string;
  operation: string | null;
  phase: string | null;
  error_reason: string | null;
  detail: Record<string, any>;
}

export interface EventPage {
  items: Array<EventItem>;
  next_cursor: string | null;
}

export interface FieldProblem {
  field: string;
  message: string;
}

export interface NetworkLog {
  items: Array<NetworkLogItem>;
}

export interface NetworkLogItem {
  hour: string;
  name: string;
  port: number;
  verdict: Verdict;
  count: number;
}

export interface NetworkPolicy {
  enforced: boolean;
  choice: Policy | null;
  limit: Policy | null;
  installation: Policy;
  owners_may_loosen: boolean;
  effective: Array<Policy>;
}

export interface NextChange {
  to: DesiredState;
  at: string;
}

export type Operation =
  | "NONE"
  | "PROVISIONING"
  | "RESTORING"
  | "STARTING"
  | "STOPPING"
  | "ARCHIVING"
  | "CREATE_EMPTY_ARCHIVE"
  | "DELETING";

export interface OperationItem {
  id: number;
  operation: Operation;
  result: OperationResult;
  started_at: string;
  ended_at: string | null;
  duration_seconds: number | null;
  attempts: number;
  error_reason: ErrorReason | null;
  message: string | null;
  temporal_url: string | null;
}

export interface OperationPage {
  items: Array<OperationItem>;
  next_cursor: string | null;
}

export type OperationResult =
  | "RUNNING"
  | "COMPLETED"
  | "FAILED"
  | "RELEASED"
  | "ABANDONED";

export interface OutOfReach {
  since: string | null;
  message: string;
  last_archive_at: string | null;
}

export interface Owner {
  id: string;
  username: string;
}

export interface Person {
  id: string;
  username: string;
  role: "user" | "admin";
}

export type Phase =
  | "PENDING"
  | "ARCHIVED"
  | "STANDBY"
  | "RUNNING"
  | "ERROR"
  | "DELETING"
  | "DELETED";

export interface Policy {
  mode: EgressMode;
  names: Array<string>;
}

export interface PortItem {
  port: number;
  process: string | null;
  listening: boolean;
  url: string | null;
  share: Share | null;
}

export interface PortList {
  items: Array<PortItem>;
  sharing: Sharing;
  max_share_seconds: number | null;
  unavailable: string | null;
}

export interface Problem {
  code: Code;
  message: string;
  request_id: string | null;
  fields: Array<FieldProblem> | null;
  operation: string | null;
  since: string | null;
  phase: string | null;
  choices: Array<string> | null;
  scope: string | null;
  running: Array<RunningItem> | null;
  retry_after_seconds: number | null;
}

export interface ProgressView {
  id: string;
  operation: Operation;
  step: string | null;
  done: number;
  total: number | null;
  unit: string | null;
  at: string;
}

export interface QrCodeView {
  size: number;
  path: string;
}

export type RecoverChoice =
  | "retry"
  | "wait"
  | "restore_archive"
  | "use_disk"
  | "start_empty";

export interface RecoverOption {
  choice: RecoverChoice;
  meaning: string;
  consequence: string | null;
}

export interface RecoverView {
  choices: Array<RecoverOption>;
  archives: Array<ArchiveOption>;
  undelete: boolean;
}

export interface RecoveryCodes {
  codes: Array<string>;
}

export interface Refused {
  id: string;
  message: string;
}

export type Resource =
  | "container"
  | "volume"
  | "archive";

export interface RunningItem {
  id: string;
  name: string;
  phase: string;
  desired_state: string;
}

export interface RunningLimitsView {
  running: number;
  max_running_global: number;
  max_running_per_user: number;
}

export type Scope =
  | "read"
  | "workspaces"
  | "admin";

export interface SessionItem {
  id: string;
  created_at: string;
  expires_at: string;
  last_seen_at: string | null;
  user_agent: string | null;
  current: boolean;
}

export interface SessionList {
  items: Array<SessionItem>;
}

export interface SessionView {
  id: string;
  user: Person;
  credential: "session" | "token";
  expires_at: string | null;
  csrf_token: string | null;
  unsafe_workspaces: boolean;
}

export interface Share {
  audience: Audience;
  created_at: string;
  expires_at: string | null;
}

export interface SharedPort {
  audience: Audience;
  created_at: string;
  expires_at: string | null;
  port: number;
  url: string;
}

export type Sharing =
  | "none"
  | "users"
  | "public";

export interface SignInBegun {
  url: string;
}

export interface SignInOptions {
  provider: string | null;
  passwords: "everyone" | "administrators";
}

export type Status =
  | "True"
  | "False"
  | "Unknown";

export interface StepItem {
  name: string;
  operation_attempt: number;
  result: StepResult;
  scheduled_at: string;
  started_at: string | null;
  ended_at: string | null;
  attempts: number;
  error: string | null;
}

export interface StepList {
  items: Array<StepItem>;
  hint: string | null;
}

export type StepResult =
  | "RUNNING"
  | "COMPLETED"
  | "FAILED"
  | "CANCELLED";

export interface SweepView {
  id: string;
  paused: boolean;
  running: boolean;
  last_started_at: string | null;
  next_at: string | null;
  age_seconds: number | null;
}

export interface SystemStatus {
  version: string;
  now: string;
  dependencies: Array<DependencyHealth>;
  sweeps: Array<SweepView>;
  phases: Record<string, number>;
  needs_person: number;
  limits: RunningLimitsView;
  live_clients: number;
}

export interface TokenItem {
  id: string;
  name: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  scopes: Array<Scope> | null;
  workspaces: Array<string> | null;
}

export interface TokenList {
  items: Array<TokenItem>;
}

export interface UserItem {
  id: string;
  username: string;
  role: "user" | "admin";
  created_at: string;
  disabled_at: string | null;
  locked_until: string | null;
}

export interface UserPage {
  items: Array<UserItem>;
  next_cursor: string | null;
}

export type Verdict =
  | "allowed"
  | "refused";

export interface Waiting {
  resources: Array<Resource>;
  since: string;
  message: string;
}

export interface Workspace {
  id: string;
  name: string;
  description: string | null;
  memo: string | null;
  url: string;
  owner: Owner;
  image_ref: string;
  instance_backend: string;
  storage_backend: string;
  phase: Phase;
  phase_changed_at: string;
  desired_state: DesiredState;
  operation: Operation;
  operation_started_at: string | null;
  conditions: Record<string, ConditionView>;
  observed_at: string | null;
  restart_to_apply: boolean;
  error: ErrorView | null;
  settled: boolean;
  needs_person: boolean;
  recover: RecoverView | null;
  recovering: boolean;
  waiting: Waiting | null;
  out_of_reach: OutOfReach | null;
  archive: CurrentArchive | null;
  disk: Disk;
  standby_ttl_seconds: number | null;
  archive_ttl_seconds: number | null;
  effective_standby_ttl_seconds: number;
  effective_archive_ttl_seconds: number;
  next_change: NextChange | null;
  last_access_at: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
  undelete_until: string | null;
  version: number;
}

export interface WorkspacePage {
  items: Array<Workspace>;
  next_cursor: string | null;
}
