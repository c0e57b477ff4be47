; load_four(address, a, b, c, d): the four numbers at an address that is a multiple of 16, by one load; store_four puts them there.
; Arguments are places of local variables; inlining leaves registers of them. @TARGET@, @LAYOUT@ and @SPACE@ are filled in by
; benchmarks/wide_bitcode.py, which writes wide_cuda.bc and wide_x64.bc (the latter for tests on machines without a GPU).
target datalayout = "@LAYOUT@"
target triple = "@TARGET@"

define void @load_four(ptr %at, ptr %a, ptr %b, ptr %c, ptr %d) alwaysinline {
  %number = load i64, ptr %at
  %place = inttoptr i64 %number to ptr @SPACE@
  %all = load <4 x float>, ptr @SPACE@ %place, align 16
  %first = extractelement <4 x float> %all, i32 0
  %second = extractelement <4 x float> %all, i32 1
  %third = extractelement <4 x float> %all, i32 2
  %fourth = extractelement <4 x float> %all, i32 3
  store float %first, ptr %a
  store float %second, ptr %b
  store float %third, ptr %c
  store float %fourth, ptr %d
  ret void
}

define void @store_four(ptr %at, ptr %a, ptr %b, ptr %c, ptr %d) alwaysinline {
  %number = load i64, ptr %at
  %place = inttoptr i64 %number to ptr @SPACE@
  %first = load float, ptr %a
  %second = load float, ptr %b
  %third = load float, ptr %c
  %fourth = load float, ptr %d
  %one = insertelement <4 x float> poison, float %first, i32 0
  %two = insertelement <4 x float> %one, float %second, i32 1
  %three = insertelement <4 x float> %two, float %third, i32 2
  %all = insertelement <4 x float> %three, float %fourth, i32 3
  store <4 x float> %all, ptr @SPACE@ %place, align 16
  ret void
}
