-- Functions of SQLite that our statements use and PostgreSQL lacks. The statements lint creates them in PostgreSQL.

CREATE FUNCTION instr(text, text) RETURNS int LANGUAGE sql IMMUTABLE STRICT
    RETURN strpos($1, $2);

-- The larger and the smaller of two, NULL where one is NULL.
CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
    RETURN CASE WHEN $1 > $2 THEN $1 ELSE $2 END;
CREATE FUNCTION max(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT
    RETURN CASE WHEN $1 > $2 THEN $1 ELSE $2 END;
CREATE FUNCTION min(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
    RETURN CASE WHEN $1 < $2 THEN $1 ELSE $2 END;

-- SUM(condition): in how many rows it holds.
CREATE FUNCTION sum_boolean_step(bigint, boolean) RETURNS bigint LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN $2 IS NULL THEN $1 ELSE COALESCE($1, 0) + $2::int END;
CREATE AGGREGATE sum(boolean) (SFUNC = sum_boolean_step, STYPE = bigint);

-- The scalar at '$.a.b' of a text that holds JSON.
CREATE FUNCTION json_extract(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    RETURN $1::jsonb #>> string_to_array(substr($2, 3), '.');

-- The entries of a JSON array of strings.
CREATE FUNCTION json_each(text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE STRICT
    AS 'SELECT jsonb_array_elements_text($1::jsonb)';
