"""Translates a module of NVIDIA's PTX, as the kernel compiler writes it, into C that a CPU carries out thread by thread.

    python benchmarks/ptx.py module.ptx > module.c

For emulator.c, which plays the driver: every kernel becomes a function that is one of its threads. Registers become variables
of their width, so that one that holds a number is told from one that holds its bits by the instruction alone, as in PTX. What
is not known stops the translation with the line in question. Numbers agree with those of a GPU but for the last bits of
approximate divisions, roots and functions, which are exact here.
"""

import re
import sys

INTEGERS = {"s": "s", "u": "u", "b": "u"}
SPECIAL = {
    "%tid.x": "t->index", "%ntid.x": "t->size", "%ctaid.x": "t->block", "%nctaid.x": "t->blocks", "%laneid": "(t->index & 31)",
    "%warpid": "(t->index >> 5)", "%lanemask_lt": "((1u << (t->index & 31)) - 1)", "%clock64": "0ull", "%globaltimer": "0ull",
    "%lanemask_le": "(~0u >> (31 - (t->index & 31)))", "%lanemask_eq": "(1u << (t->index & 31))", "%smid": "0u", "%nsmid": "1u",
}  # fmt: skip
for _name, _number in {"tid": "0u", "ntid": "1u", "ctaid": "0u", "nctaid": "1u"}.items():
    SPECIAL |= {f"%{_name}.{_axis}": _number for _axis in "yz"}
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
UNORDERED = {"equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">="}
JOINED = {"and": "&&", "or": "||", "xor": "^"}
SHUFFLES = {"up": 0, "down": 1, "bfly": 2, "idx": 3}
ATOMIC = {"add": "old + x", "or": "old | x", "and": "old & x", "xor": "old ^ x", "exch": "x", "max": "old > x ? old : x",
          "min": "old < x ? old : x"}  # fmt: skip


IGNORED = {"ftz", "uni", "full", "relaxed", "gpu", "sys", "volatile", "aligned"}  # flushing is the processor's, here and there


class NotKnown(Exception):
    """An instruction nobody has needed so far."""


def c_name(name: str) -> str:
    """As C allows it."""
    return re.sub(r"\W", "_", name.replace("$", "_S_").replace("%", "_P_"))


def c_type(kind: str) -> str:
    """Of a PTX type like s32, b64, f32."""
    return {"f32": "float", "f64": "double", "pred": "u32"}.get(kind) or INTEGERS[kind[0]] + kind[1:]


def width_of(register: str) -> str:
    """The C type of a register, by the name the compiler gives it."""
    kind = re.match(r"%([a-zA-Z]+)", register)[1]
    return {"p": "u32", "rs": "u16", "r": "u32", "rd": "u64", "f": "u32", "fd": "u64", "SP": "u64", "SPL": "u64"}[kind]


class Module:
    """The parts of a module's text."""

    def __init__(self, text: str):
        text = re.sub(r"//[^\n]*", "", text)
        self.shared: dict[str, int] = {}
        self.names: set[str] = set()
        self.constants: list[str] = []
        size = 0
        pattern = (
            r"^\s*(?:\.\w+\s+)*?\.(shared|global|const)\s+\.align\s+(\d+)\s+\.([bsuf]\d+)\s+([\w$.]+)(?:\[(\d*)\])?"
            r"\s*(=\s*[^;]*)?;"
        )
        for place, align, kind, name, length, values in re.findall(pattern, text, re.M):
            count, step = int(length or 1), int(align)
            if place == "shared":
                size = -(-size // step) * step
                self.shared[name] = size
                size += count * int(kind[1:]) // 8
            else:
                self.names.add(name)
                given = re.sub(r"^=\s*", "", values) or "{0}"
                given = given if given.startswith("{") else "{" + given + "}"
                symbols = [symbol for symbol in re.findall(r"[A-Za-z_$][\w$]*", given) if not symbol.startswith("0x")]
                given = "{0}" if symbols else given
                memory = f"{c_name(name)}[{count}] __attribute__((aligned({step})))"
                self.constants.append(f"static {c_type(kind)} {memory} = {given};")
        self.shared_size = size
        self.functions = [self._function(found) for found in re.finditer(
            r"^\s*(?:\.(?:visible|weak|extern)\s+)*\.(entry|func)\s*(\([^)]*\))?\s*([\w$.]+)\s*\(([^)]*)\)\s*([^{;]*)(\{.*?^\}|;)",
            text, re.M | re.S,
        )]  # fmt: skip
        self.names |= {function["name"] for function in self.functions}

    @staticmethod
    def _function(found: re.Match) -> dict:
        def sizes(params: str) -> list[tuple[str, int]]:
            result = []
            for param in filter(None, (one.strip() for one in (params or "").strip("()").split(","))):
                name, length = re.search(r"([\w$.]+)(?:\[(\d+)\])?$", param).groups()
                kind = re.search(r"\.([bsuf])(\d+)", param)
                result.append((name, int(kind[2]) // 8 * int(length or 1)))
            return result

        kind, returned, name, params, _, body = found.groups()
        return {"kind": kind, "name": name, "returned": sizes(returned), "params": sizes(params), "body": body}


class Body:
    """One function, line by line."""

    def __init__(self, module: Module, function: dict):
        self.module, self.function = module, function
        self.local: dict[str, int] = {}  # parameters of calls, the stack
        self.targets: dict[str, list[str]] = {}
        self.together = self.polls = False
        self.calls: set[str] = set()

    # --- operands ----------------------------------------------------------------------------------------------------
    def value(self, operand: str, kind: str) -> str:
        """An operand as a number of a PTX type."""
        raw = self.raw(operand)
        if kind in ("f32", "f64"):
            return f"{kind}({raw})"
        return raw if kind == "pred" else f"({c_type(kind)})({raw})"

    def raw(self, operand: str) -> str:
        operand = operand.strip()
        if operand in SPECIAL:
            return SPECIAL[operand]
        if operand.startswith("%"):
            return c_name(operand)
        if operand.startswith("!"):
            return f"!{self.raw(operand[1:])}"
        if re.fullmatch(r"0f[0-9A-Fa-f]{8}", operand):
            return f"0x{operand[2:]}u"
        if re.fullmatch(r"0d[0-9A-Fa-f]{16}", operand):
            return f"0x{operand[2:]}ull"
        if re.fullmatch(r"-?(0x[0-9A-Fa-f]+|\d+)U?", operand):
            number = int(operand.rstrip("U"), 0)
            return f"{number}ll" if -(2**63) < number < 2**63 else f"{number % 2**64}ull"
        return self.symbol(operand)

    def symbol(self, name: str) -> str:
        if name in self.module.shared:
            return f"((u64)t->shared + {self.module.shared[name]})"
        if name in self.local:
            return f"(u64){c_name(name)}"
        for place, (param, _) in enumerate(self.function["params"]):
            if name == param:
                return f"(u64)params[{place}]"
        for param, _ in self.function["returned"]:
            if name == param:
                return "(u64)result"
        if name in self.module.names:
            return f"(u64){c_name(name)}"
        raise NotKnown(f"who is {name}?")

    def address(self, operand: str) -> str:
        base, offset = re.fullmatch(r"\[([^+\]]+?)\s*(?:\+(-?\w+))?\]", operand.strip()).groups()
        return f"({self.raw(base)})" + (f" + ({offset})" if offset else "")

    @staticmethod
    def put(target: str, number: str, kind: str) -> str:
        """``target = number``, a number of a PTX type."""
        target = target.strip()
        if target == "_":
            return f"(void)({number});"
        if kind in ("f32", "f64"):
            return f"{c_name(target)} = b{kind[1:]}({number});"
        wide = width_of(target)
        if kind == "pred":
            return f"{c_name(target)} = ({number}) != 0;"
        spread = f"({'s' if kind[0] == 's' else 'u'}{wide[1:]})"  # a narrow number fills a wide register by its sign
        return f"{c_name(target)} = ({wide}){spread}({c_type(kind)})({number});"

    # --- instructions ------------------------------------------------------------------------------------------------
    def instruction(self, line: str) -> str:
        found = re.fullmatch(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.:]*)\s*(.*?)\s*;", line, re.S)
        if found is None:
            raise NotKnown(line)
        negated, guard, name, rest = found.groups()
        code = self.carried_out(name, self.split(rest))
        return f"if ({negated}{c_name(guard)}) {{ {code} }}" if guard else code

    @staticmethod
    def split(rest: str) -> list[str]:
        """Operands; those in braces or parentheses are one."""
        result, depth, word = [], 0, ""
        for letter in rest:
            depth += (letter in "{([") - (letter in "})]")
            if letter == "," and depth == 0:
                result.append(word.strip())
                word = ""
            else:
                word += letter
        return [*result, word.strip()] if word.strip() else result

    def carried_out(self, name: str, args: list[str]) -> str:
        parts = [part for part in name.split(".") if part not in IGNORED]
        first, kind = parts[0], parts[-1]
        method = getattr(self, f"_{first}", None)
        if method is None:
            raise NotKnown(name)
        return method(parts, kind, args)

    def _two(self, args: list[str], kind: str, form: str) -> str:
        return self.put(args[0], form.format(*(self.value(arg, kind) for arg in args[1:])), kind)

    def _add(self, parts, kind, args):
        return self._two(args, kind, "{0} + {1}")

    def _sub(self, parts, kind, args):
        return self._two(args, kind, "{0} - {1}")

    def _and(self, parts, kind, args):
        return self._two(args, kind, "{0} & {1}")

    def _or(self, parts, kind, args):
        return self._two(args, kind, "{0} | {1}")

    def _xor(self, parts, kind, args):
        return self._two(args, kind, "{0} ^ {1}")

    def _not(self, parts, kind, args):
        return self._two(args, kind, "!{0}" if kind == "pred" else "~{0}")

    def _neg(self, parts, kind, args):
        return self._two(args, kind, "-{0}")

    def _abs(self, parts, kind, args):
        return self._two(args, kind, {"f32": "fabsf({0})", "f64": "fabs({0})"}.get(kind, "({0} < 0 ? -{0} : {0})"))

    def _copysign(self, parts, kind, args):  # PTX: the sign of the first
        return self._two(args, kind, "copysign({1}, {0})" if kind == "f64" else "copysignf({1}, {0})")

    def _min(self, parts, kind, args):
        return self._two(args, kind, {"f32": "fminf({0}, {1})", "f64": "fmin({0}, {1})"}.get(kind, "({0} < {1} ? {0} : {1})"))

    def _max(self, parts, kind, args):
        return self._two(args, kind, {"f32": "fmaxf({0}, {1})", "f64": "fmax({0}, {1})"}.get(kind, "({0} > {1} ? {0} : {1})"))

    def _div(self, parts, kind, args):
        safe = "{0} / {1}" if kind[0] == "f" else "({1} ? {0} / {1} : 0)"
        return self._two(args, kind, safe)

    def _rem(self, parts, kind, args):
        return self._two(args, kind, "({1} ? {0} % {1} : 0)")

    def _fma(self, parts, kind, args):
        return self._two(args, kind, "fmaf({0}, {1}, {2})" if kind == "f32" else "fma({0}, {1}, {2})")

    def _sqrt(self, parts, kind, args):
        return self._two(args, kind, "sqrtf({0})" if kind == "f32" else "sqrt({0})")

    def _rsqrt(self, parts, kind, args):
        return self._two(args, kind, "1.0f / sqrtf({0})" if kind == "f32" else "1.0 / sqrt({0})")

    def _rcp(self, parts, kind, args):
        return self._two(args, kind, "1.0f / {0}" if kind == "f32" else "1.0 / {0}")

    def _sin(self, parts, kind, args):
        return self._two(args, kind, "sinf({0})")

    def _cos(self, parts, kind, args):
        return self._two(args, kind, "cosf({0})")

    def _ex2(self, parts, kind, args):
        return self._two(args, kind, "exp2f({0})")

    def _lg2(self, parts, kind, args):
        return self._two(args, kind, "log2f({0})")

    def _tanh(self, parts, kind, args):
        return self._two(args, kind, "tanhf({0})")

    def _mul(self, parts, kind, args):
        if kind[0] == "f":
            return self._two(args, kind, "{0} * {1}")
        a, b = (self.value(arg, kind) for arg in args[1:])
        double = {"16": "32", "32": "64", "64": "128"}[kind[1:]]
        wide = f"{'__int128' if kind[0] == 's' else 'unsigned __int128'}" if double == "128" else c_type(kind[0] + double)
        if parts[1] == "wide":
            return self.put(args[0], f"({wide}){a} * ({wide}){b}", kind[0] + double)
        if parts[1] == "hi":
            return self.put(args[0], f"(({wide}){a} * ({wide}){b}) >> {kind[1:]}", kind)
        return self.put(args[0], f"({wide}){a} * ({wide}){b}", kind)

    def _mad(self, parts, kind, args):
        a, b = (self.value(arg, kind) for arg in args[1:3])
        if parts[1] == "wide":
            double = kind[0] + {"16": "32", "32": "64"}[kind[1:]]
            return self.put(args[0], f"({c_type(double)}){a} * ({c_type(double)}){b} + {self.value(args[3], double)}", double)
        if parts[1] != "lo":
            raise NotKnown(".".join(parts))
        unsigned = f"u{kind[1:]}"
        return self.put(args[0], f"({unsigned}){a} * ({unsigned}){b} + {self.value(args[3], unsigned)}", kind)

    def _shl(self, parts, kind, args):
        bits = int(kind[1:])
        amount = self.value(args[2], "u32")
        return self.put(args[0], f"{amount} >= {bits} ? 0 : {self.value(args[1], kind)} << {amount}", kind)

    def _shr(self, parts, kind, args):
        bits = int(kind[1:])
        amount, x = self.value(args[2], "u32"), self.value(args[1], kind)
        beyond = f"({x} < 0 ? -1 : 0)" if kind[0] == "s" else "0"
        return self.put(args[0], f"{amount} >= {bits} ? {beyond} : {x} >> {amount}", kind)

    def _shf(self, parts, kind, args):
        low, high, amount = self.value(args[1], "u32"), self.value(args[2], "u32"), self.value(args[3], "u32")
        amount = f"({amount} & 31)" if parts[2] == "wrap" else f"({amount} > 32 ? 32 : {amount})"
        both = f"((u64){high} << 32 | {low})"
        return self.put(args[0], f"{both} << {amount} >> 32" if parts[1] == "l" else f"{both} >> {amount}", "u32")

    def _bfe(self, parts, kind, args):
        if kind not in ("u32", "s32"):
            raise NotKnown(".".join(parts))
        x, start, count = self.value(args[1], kind), self.value(args[2], "u32"), self.value(args[3], "u32")
        return self.put(args[0], f"{'signed_field' if kind == 's32' else 'bits_of_field'}({x}, {start}, {count})", kind)

    def _bfi(self, parts, kind, args):
        x, into, start, count = (self.value(arg, "u32") for arg in args[1:])
        return self.put(args[0], f"put_field({into}, {x}, {start}, {count})", "u32")

    def _prmt(self, parts, kind, args):
        return self._two(args, "u32", "permute({0}, {1}, {2})")

    def _popc(self, parts, kind, args):
        return self.put(args[0], f"__builtin_popcountll({self.value(args[1], 'u' + kind[1:])})", "u32")

    def _clz(self, parts, kind, args):
        x, bits = self.value(args[1], "u" + kind[1:]), int(kind[1:])
        return self.put(args[0], f"{x} ? __builtin_clzll({x}) - {64 - bits} : {bits}", "u32")

    def _brev(self, parts, kind, args):
        return self._two(args, "u32", "turned({0})")

    def _setp(self, parts, kind, args):
        a, b = self.value(args[1], kind), self.value(args[2], kind)
        how = parts[1]
        if how in UNORDERED:
            told = f"({a} {UNORDERED[how]} {b} || isunordered({a}, {b}))"
        elif how in ("num", "nan"):
            told = f"{'!' if how == 'num' else ''}isunordered({a}, {b})"
        elif how == "ne" and kind[0] == "f":
            told = f"({a} != {b} && !isunordered({a}, {b}))"
        else:
            told = f"({a} {COMPARED[how]} {b})"
        if len(args) == 4:
            told = f"({told} {JOINED[parts[2]]} {self.raw(args[3])})"
        if "|" in args[0]:
            raise NotKnown("two targets of setp")
        return self.put(args[0], told, "pred")

    def _selp(self, parts, kind, args):
        return self.put(args[0], f"{self.raw(args[3])} ? {self.value(args[1], kind)} : {self.value(args[2], kind)}", kind)

    def _mov(self, parts, kind, args):
        if args[0].startswith("{"):  # one register into two
            low, high = self.split(args[0].strip("{}"))
            x, half = self.value(args[1], "u64"), 8 * {"b32": 2, "b64": 4}[kind]
            return self.put(low, x, f"u{half}") + " " + self.put(high, f"{x} >> {half}", f"u{half}")
        if args[1].startswith("{"):
            low, high = self.split(args[1].strip("{}"))
            half = 8 * {"b32": 2, "b64": 4}[kind]
            joined = f"(u64){self.value(high, f'u{half}')} << {half} | {self.value(low, f'u{half}')}"
            return self.put(args[0], joined, kind)
        if kind[0] == "f":
            kind = "b" + kind[1:]
        return self.put(args[0], self.value(args[1], kind), kind)

    def _cvta(self, parts, kind, args):
        return self.put(args[0], self.value(args[1], "u64"), "u64")

    def _cvt(self, parts, kind, args):
        to, come = parts[-2], parts[-1]
        x = self.value(args[1], come)
        if come[0] == "f":
            wide = "f" if come == "f32" else ""
            whole = {"rni": f"rint{wide}", "rzi": f"trunc{wide}", "rmi": f"floor{wide}", "rpi": f"ceil{wide}"}
            x = next((f"{whole[part]}({x})" for part in parts if part in whole), x)
            if to[0] != "f":
                x = f"to_{c_type(to)}({x})"
        if "sat" in parts:
            if to != "f32":
                raise NotKnown(".".join(parts))
            x = f"fminf(fmaxf({x}, 0.0f), 1.0f)"
        return self.put(args[0], f"({c_type(to)})({x})", to)

    def _vector(self, operand: str) -> list[str]:
        return self.split(operand.strip("{}")) if operand.startswith("{") else [operand]

    def _ld(self, parts, kind, args):
        targets, kind = self._vector(args[0]), "b" + kind[1:] if kind[0] == "f" else kind
        step, at = int(kind[1:]) // 8, self.address(args[1])
        if len(targets) == 1:
            return self.put(targets[0], f"ld_{c_type(kind)}({at})", kind)
        loads = [self.put(target, f"ld_{c_type(kind)}(_at + {k * step})", kind) for k, target in enumerate(targets)]
        return f"{{ u64 _at = {at}; {' '.join(loads)} }}"

    def _st(self, parts, kind, args):
        values, kind = self._vector(args[1]), "u" + kind[1:]
        step, at = int(kind[1:]) // 8, self.address(args[0])
        return " ".join(f"st_{kind}({at} + {k * step}, {self.value(value, kind)});" for k, value in enumerate(values))

    def _atom(self, parts, kind, args, returned=True):
        how = next(part for part in parts[1:] if part in ATOMIC or part == "cas")
        target, place, *given = args if returned else ["_", *args]
        number = c_type(kind)
        load, store = f"ld_{'u' + kind[1:]}(_at)", f"st_u{kind[1:]}"
        old = f"f{kind[1:]}({load})" if kind[0] == "f" else f"({number}){load}"
        put = (lambda text: f"b{kind[1:]}({text})") if kind[0] == "f" else (lambda text: f"(u{kind[1:]})({text})")
        if how == "cas":
            then = f"{number} x = {self.value(given[0], kind)}; if (old == x) {store}(_at, {put(self.value(given[1], kind))});"
        else:
            then = f"{number} x = {self.value(given[0], kind)}; {store}(_at, {put(ATOMIC[how])});"
        poll = ""
        if how == "or" and given[0] == "0":  # somebody waits for others
            self.polls = self.together = True
            poll = "t->with->poll(t); "
        return f"{{ {poll}u64 _at = {self.address(place)}; {number} old = {old}; {then} {self.put(target, 'old', kind)} }}"

    def _red(self, parts, kind, args):
        return self._atom(parts, kind, args, False)

    def _bar(self, parts, kind, args):
        if parts[1] == "warp":
            return ""
        if args not in (["0"], []):
            raise NotKnown(f"barrier {args}")
        self.together = True
        return "t->with->barrier(t);"

    _barrier = _bar

    def _membar(self, parts, kind, args):
        return ""

    _fence = _nanosleep = _membar

    def _shfl(self, parts, kind, args):
        self.together = True
        target, _, taken = args[0].partition("|")
        value, lane, clamp = (self.value(arg, "u32") for arg in args[1:4])
        told = f"{c_name(taken)} = _taken;" if taken else ""
        shuffled = f"t->with->shuffle(t, {SHUFFLES[parts[2]]}, {value}, {lane}, {clamp}, &_taken)"
        return f"{{ u32 _taken; {self.put(target, shuffled, 'b32')} {told} }}"

    def _vote(self, parts, kind, args):
        self.together = True
        votes = f"t->with->vote(t, {self.raw(args[1])})"
        if "ballot" in parts:
            return self.put(args[0], votes, "b32")
        if "any" in parts:
            return self.put(args[0], f"{votes} != 0", "pred")
        raise NotKnown(".".join(parts))

    def _bra(self, parts, kind, args):
        return f"goto {c_name(args[0])};"

    def _brx(self, parts, kind, args):
        cases = " ".join(f"case {k}: goto {c_name(to)};" for k, to in enumerate(self.targets[args[1]]))
        return f"switch ({self.raw(args[0])}) {{ {cases} }}"

    def _ret(self, parts, kind, args):
        return "return;"

    _exit = _ret

    def _trap(self, parts, kind, args):
        return 't->with->stop("trap");'

    def _call(self, parts, kind, args):
        returned = "0"
        if args and args[0].startswith("("):
            inside = args.pop(0).strip("() ")
            returned = c_name(inside) if inside else "0"
        who = args.pop(0)
        given = self.split(args.pop(0).strip()[1:-1]) if args and args[0].startswith("(") else []
        packed = ", ".join(c_name(one) for one in given) or "0"
        if who.startswith("%"):
            self.together = True  # whoever it is
            called = f"((void (*)(struct thread *, u8 *, u8 **)){c_name(who)})"
        else:
            self.calls.add(who)
            called = c_name(who)
        return f"{{ u8 *_given[] = {{{packed}}}; {called}(t, (u8 *){returned}, _given); }}"

    # --- the whole ---------------------------------------------------------------------------------------------------
    def translated(self) -> str:
        lines = []
        body = self.function["body"].strip()[1:-1]
        for label, names in re.findall(r"^\s*([\w$]+):\s*\.branchtargets\s*([^;]*);", body, re.M | re.S):
            self.targets[label] = [name.strip() for name in names.split(",")]
        body = re.sub(r"^\s*[\w$]+:\s*\.branchtargets\s*[^;]*;", "", body, flags=re.M | re.S)
        body = re.sub(r"^\s*[\w$]+\s*:\s*\.callprototype[^;]*;", "", body, flags=re.M | re.S)
        declared = {}
        statements = re.split(r"(?<=[;{}:])\s*\n", body)
        for statement in statements:
            text = " ".join(statement.split())
            if not text or text.startswith((".reg", ".pragma", ".loc ")):
                continue
            memory = re.fullmatch(r"\.(?:local|param) (?:\.align \d+ )?\.[bsuf](\d+) ([\w$]+)(?:\[(\d+)\])?;", text)
            if memory:
                bits, name, length = memory.groups()
                size = int(bits) // 8 * int(length or 1)
                declared[name] = max(size, declared.get(name, 0))
                self.local[name] = size
                continue
            label = re.fullmatch(r"([\w$]+):", text)
            if label:
                lines.append(f"{c_name(label[1])}:;")
            elif text in ("{", "}"):
                continue
            else:
                lines.append("    " + self.instruction(text))
        registers = sorted(set(re.findall(r"%(?:p|rs|rd|r|fd|f)\d+\b|%SPL?\b", body)))
        first = [f"    {width_of(register)} {c_name(register)} = 0;" for register in registers]
        for name, size in declared.items():
            first.append(f"    u8 {c_name(name)}[{max(size, 8)}] __attribute__((aligned(16))) = {{0}};")
        return "\n".join([f"{self.head()} {{", *first, *lines, "    return;", "}"])

    def head(self) -> str:
        name = c_name(self.function["name"])
        if self.function["kind"] == "entry":
            return f"void {name}(struct thread *t, u8 **params)"
        return f"static void {name}(struct thread *t, u8 *result, u8 **params)"


def translate(text: str) -> str:
    """The module as C."""
    module = Module(text)
    defined = [function for function in module.functions if function["body"] != ";"]
    known = {function["name"] for function in defined}
    bodies = [Body(module, function) for function in defined]
    codes = []
    for body in bodies:
        try:
            codes.append(body.translated())
        except NotKnown as what:
            raise SystemExit(f"{body.function['name']}: {what}") from None
    together = {body.function["name"]: body.together for body in bodies}
    polls = {body.function["name"]: body.polls for body in bodies}
    for _ in bodies:  # who calls somebody that does
        for body in bodies:
            name = body.function["name"]
            together[name] |= any(together.get(called, False) for called in body.calls)
            polls[name] |= any(polls.get(called, False) for called in body.calls)
    parts = ['#include "emulator.h"', *module.constants]
    for function in module.functions:
        if function["body"] == ";" and function["name"] not in known:
            name = c_name(function["name"])
            stops = f't->with->stop("{function["name"]} was called");'
            parts.append(f"static void {name}(struct thread *t, u8 *result, u8 **params) {{ {stops} }}")
            known.add(function["name"])
    parts += [f"{body.head()};" for body in bodies]
    parts += codes
    parts.append(f"const u32 shared_size = {module.shared_size};")
    for body in bodies:
        if body.function["kind"] == "entry":
            name = body.function["name"]
            sizes = [size for _, size in body.function["params"]]
            facts = [int(together[name]), int(polls[name]), len(sizes), *sizes]
            parts.append(f"const u32 {c_name(name)}_facts[] = {{{', '.join(map(str, facts))}}};")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        sys.stdout.write(translate(file.read()))
